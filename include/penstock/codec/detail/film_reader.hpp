// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<libavformat/avformat.h>) || !__has_include(<libavcodec/avcodec.h>)
#error "penstock/codec/detail/film_reader.hpp needs FFmpeg's libraries: link penstock::video"
#endif

#include <penstock/codec/detail/film_container.hpp>
#include <penstock/codec/detail/kept_indexes.hpp>
#include <penstock/codec/detail/stored_image.hpp>
#include <penstock/image/image_limits.hpp>
#include <penstock/video/film.hpp>
#include <penstock/video/frame_index.hpp>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
}

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>

/// Reads the header and the index of a film in memory, with FFmpeg's demuxers.
namespace penstock::inline v0_1 {

/// What `video` accepts of a file's header and index, before anything is decoded. The defaults admit what
/// cameras make.
struct film_limits {
  std::uint32_t width = 16'384;                  ///< in pixels
  std::uint32_t height = 16'384;                 ///< in pixels
  std::uint64_t bytes = std::uint64_t{1} << 28;  ///< of one decoded frame, in RGB
  std::uint32_t frames = 1u << 24;               ///< in the file
};

namespace detail {

/// The name of FFmpeg's error.
[[nodiscard]] inline std::string ffmpeg_error(int code) {
  char text[AV_ERROR_MAX_STRING_SIZE] = {};
  return av_strerror(code, text, sizeof text) == 0 ? std::string(text) : "error " + std::to_string(code);
}

/// What FFmpeg could not allocate.
inline void check_memory(const void* made) {
  if (made == nullptr) throw std::bad_alloc();
}

struct free_packet {
  void operator()(AVPacket* p) const noexcept { av_packet_free(&p); }
};
struct free_frame {
  void operator()(AVFrame* f) const noexcept { av_frame_free(&f); }
};
struct free_parameters {
  void operator()(AVCodecParameters* p) const noexcept { avcodec_parameters_free(&p); }
};
using owned_packet = std::unique_ptr<AVPacket, free_packet>;
using owned_frame = std::unique_ptr<AVFrame, free_frame>;
using owned_parameters = std::unique_ptr<AVCodecParameters, free_parameters>;

/// How the matrix of a track turns its pictures: to the nearest quarter. It maps (x, y) to (ax + cy, bx +
/// dy).
/// Source: ISO/IEC 14496-12, 6.2.2; libavutil/display.h.
[[nodiscard]] inline orientation orientation_of_matrix(const std::int32_t (&matrix)[9]) noexcept {
  const std::int64_t a = matrix[0], b = matrix[1], c = matrix[3], d = matrix[4];
  using enum orientation;
  if (std::abs(a) + std::abs(d) >= std::abs(b) + std::abs(c))
    return a >= 0 ? (d >= 0 ? upright : flipped) : (d >= 0 ? mirrored : rotated_180);
  return b >= 0 ? (c >= 0 ? transposed : rotated_90) : (c >= 0 ? rotated_270 : transversed);
}

[[nodiscard]] inline orientation orientation_of(const AVStream& stream) noexcept {
  const void* matrix = nullptr;
#if LIBAVFORMAT_VERSION_MAJOR >= 61
  if (const AVPacketSideData* const side = av_packet_side_data_get(
          stream.codecpar->coded_side_data, stream.codecpar->nb_coded_side_data, AV_PKT_DATA_DISPLAYMATRIX);
      side != nullptr && side->size >= sizeof(std::int32_t[9]))
    matrix = side->data;
#else
  matrix = av_stream_get_side_data(&stream, AV_PKT_DATA_DISPLAYMATRIX, nullptr);
#endif
  std::int32_t values[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  if (matrix != nullptr) std::memcpy(values, matrix, sizeof values);
  return orientation_of_matrix(values);
}

/// Whether a film has frames behind the end of its file, which FFmpeg's demuxers leave out.
[[nodiscard]] inline bool has_more_than(AVStream& stream, std::uint64_t bytes) noexcept {
#if LIBAVFORMAT_VERSION_MAJOR >= 59
  const int count = avformat_index_get_entries_count(&stream);
#else
  const int count = stream.nb_index_entries;
#endif
  for (int i = 0; i < count; ++i) {
#if LIBAVFORMAT_VERSION_MAJOR >= 59
    const AVIndexEntry& entry = *avformat_index_get_entry(&stream, i);
#else
    const AVIndexEntry& entry = stream.index_entries[i];
#endif
    const auto size = static_cast<std::uint64_t>(entry.size);
    if (entry.pos < 0 || size > bytes || static_cast<std::uint64_t>(entry.pos) > bytes - size) return true;
  }
  return false;
}

/// Bytes in memory, as FFmpeg reads a file. Boxes of mp4 that are hidden are shown as free room.
class film_bytes {
 public:
  film_bytes(bytes_view file, std::span<const std::uint64_t> hidden) : file_(file), hidden_(hidden) {
    constexpr int block = 1 << 15;
    auto* const memory = static_cast<unsigned char*>(av_malloc(block));
    check_memory(memory);
    io_ = avio_alloc_context(memory, block, 0, this, &film_bytes::read, nullptr, &film_bytes::seek);
    if (io_ == nullptr) av_free(memory);
    check_memory(io_);
  }
  film_bytes(const film_bytes&) = delete;
  film_bytes& operator=(const film_bytes&) = delete;
  ~film_bytes() {
    av_freep(&io_->buffer);
    avio_context_free(&io_);
  }

  [[nodiscard]] AVIOContext* io() const noexcept { return io_; }

 private:
  static int read(void* self, std::uint8_t* to, int size) noexcept {
    auto& bytes = *static_cast<film_bytes*>(self);
    const std::size_t left = bytes.file_.size() - bytes.at_;
    if (left == 0 || size <= 0) return AVERROR_EOF;
    const std::size_t count = std::min(left, static_cast<std::size_t>(size));
    std::memcpy(to, bytes.file_.data() + bytes.at_, count);
    const std::uint64_t begin = bytes.at_, end = begin + count;
    for (auto box = std::lower_bound(bytes.hidden_.begin(), bytes.hidden_.end(), begin < 8 ? 0 : begin - 8);
         box != bytes.hidden_.end() && *box < end; ++box)
      for (std::uint64_t i = 0; i < 4; ++i)
        if (const std::uint64_t at = *box + 4 + i; at >= begin && at < end)
          to[at - begin] = static_cast<std::uint8_t>("free"[i]);
    bytes.at_ += count;
    return static_cast<int>(count);
  }
  static std::int64_t seek(void* self, std::int64_t offset, int whence) noexcept {
    auto& bytes = *static_cast<film_bytes*>(self);
    const auto size = static_cast<std::int64_t>(bytes.file_.size());
    whence &= ~AVSEEK_FORCE;
    if (whence == AVSEEK_SIZE) return size;
    if (whence == SEEK_CUR) offset += static_cast<std::int64_t>(bytes.at_);
    if (whence == SEEK_END) offset += size;
    if (offset < 0 || offset > size) return AVERROR(EINVAL);
    bytes.at_ = static_cast<std::size_t>(offset);
    return offset;
  }

  bytes_view file_;
  std::span<const std::uint64_t> hidden_;
  std::size_t at_ = 0;
  AVIOContext* io_ = nullptr;
};

/// A film's demuxer: opened once, read to the end, closed.
class film_demuxer {
 public:
  film_demuxer(bytes_view file, film_container container, std::span<const std::uint64_t> hidden = {})
      : bytes_(file, hidden) {
    AVFormatContext* made = avformat_alloc_context();
    check_memory(made);
    made->pb = bytes_.io();
    made->flags |= AVFMT_FLAG_CUSTOM_IO | AVFMT_FLAG_NOPARSE | AVFMT_FLAG_NOFILLIN;
    // All is read once, in order; sorting cues that are in no order takes long.
    if (container == film_container::matroska) made->flags |= AVFMT_FLAG_IGNIDX;
    // A file of QuickTime can name others.
    made->io_open = [](AVFormatContext*, AVIOContext**, const char*, int, AVDictionary**) {
      return AVERROR(EPERM);
    };
    auto* const format = av_find_input_format(container == film_container::mp4 ? "mov" : "matroska");
    if (format == nullptr) {
      avformat_free_context(made);
      throw error(errc::argument, "this FFmpeg was built without the demuxer of mp4 or matroska files");
    }
    // What fails frees the context.
    if (const int failed = avformat_open_input(&made, nullptr, format, nullptr); failed < 0)
      throw error(errc::format, {"the video file has no header that can be read: ", ffmpeg_error(failed)});
    context_ = made;
  }
  film_demuxer(const film_demuxer&) = delete;
  film_demuxer& operator=(const film_demuxer&) = delete;
  ~film_demuxer() { avformat_close_input(&context_); }

  /// The video stream of the most pixels; covers of albums do not count.
  [[nodiscard]] AVStream& stream() const {
    AVStream* best = nullptr;
    const auto pixels = [](const AVStream& s) {
      return std::int64_t{s.codecpar->width} * std::int64_t{s.codecpar->height};
    };
    for (unsigned i = 0; i < context_->nb_streams; ++i) {
      AVStream& one = *context_->streams[i];
      one.discard = AVDISCARD_ALL;
      if (one.codecpar->codec_type != AVMEDIA_TYPE_VIDEO ||
          (one.disposition & AV_DISPOSITION_ATTACHED_PIC) != 0)
        continue;
      if (best == nullptr || pixels(one) > pixels(*best)) best = &one;
    }
    if (best == nullptr) throw error(errc::format, "the file has no video stream");
    best->discard = AVDISCARD_DEFAULT;
    return *best;
  }
  /// The sound that the program ffmpeg would take, alone.
  [[nodiscard]] AVStream& sound() const {
    const int best = av_find_best_stream(context_, AVMEDIA_TYPE_AUDIO, -1, -1, nullptr, 0);
    if (best < 0) throw error(errc::format, "the file has no sound");
    for (unsigned i = 0; i < context_->nb_streams; ++i) context_->streams[i]->discard = AVDISCARD_ALL;
    AVStream& chosen = *context_->streams[best];
    chosen.discard = AVDISCARD_DEFAULT;
    return chosen;
  }
  /// 0, `AVERROR_EOF`, or another error.
  [[nodiscard]] int read(AVPacket& packet) const noexcept { return av_read_frame(context_, &packet); }

 private:
  film_bytes bytes_;
  AVFormatContext* context_ = nullptr;
};

/// Whether FFmpeg may be asked for a decoder of this. Others are many, and little used.
[[nodiscard]] constexpr bool known_film_codec(AVCodecID id) noexcept {
  switch (id) {
    case AV_CODEC_ID_H264:
    case AV_CODEC_ID_HEVC:
    case AV_CODEC_ID_VP8:
    case AV_CODEC_ID_VP9:
    case AV_CODEC_ID_AV1:
    case AV_CODEC_ID_MPEG1VIDEO:
    case AV_CODEC_ID_MPEG2VIDEO:
    case AV_CODEC_ID_MPEG4:
    case AV_CODEC_ID_MJPEG:
    case AV_CODEC_ID_FFV1:
    case AV_CODEC_ID_PRORES:
      return true;
    default:
      return false;
  }
}

/// Where a packet's bytes are in the file: at its position, or behind the head of its block, which in silence
/// can be the same bytes.
[[nodiscard]] inline bool find_packet(bytes_view file, bytes_view bytes, std::int64_t position,
                                      std::uint64_t& offset) noexcept {
  if (position < 0) return false;
  constexpr std::uint64_t longest_head = 64;
  auto first = static_cast<std::uint64_t>(position);
  if (first < file.size() && film_container_of(file) == film_container::matroska)  // track, time and flags
    first += 4 + static_cast<unsigned>(std::countl_zero(std::to_integer<std::uint8_t>(file[first])));
  for (std::uint64_t at = first; at <= first + longest_head; ++at) {
    if (at > file.size() || file.size() - at < bytes.size()) return false;
    if (std::memcmp(file.data() + at, bytes.data(), bytes.size()) != 0) continue;
    offset = at;
    return true;
  }
  return false;
}

/// What a reader finds out of a film, and the process keeps.
struct kept_film {
  frame_index index;
  owned_parameters parameters;
  image_size stored;
  orientation turn = orientation::upright;

  [[nodiscard]] std::uint64_t bytes() const noexcept {
    return sizeof *this + index.bytes() + sizeof(AVCodecParameters) +
           static_cast<std::uint64_t>(parameters->extradata_size);
  }
};

/// A film whose header and index are read: its memory is kept from file to file.
class film_reader {
 public:
  /// `keep`: so many bytes of indexes may be kept by the process, and this one may be among them.
  /// Throws `errc::format` for what is no film, and for truncated and damaged files unless `recover`, which
  /// takes what there is and counts one damage; `errc::limit` for what is beyond the limits.
  void open(bytes_view file, const film_limits& limits, bool orient, bool recover, std::string_view codec,
            std::uint64_t keep = 0) {
    file_ = file;
    kept_ = nullptr;
    copies_.clear();
    bytes_ = 0;
    if (file.empty()) throw error(errc::format, {"the ", codec, " file is empty: it has no bytes"});
    const film_container container = film_container_of(file);
    if (container == film_container::none)
      throw error(errc::format,
                  {"this is no ", codec,
                   " file: it begins neither as mp4 nor as matroska (mkv, webm); convert it, as "
                   "with ffmpeg -i film.avi -c copy film.mkv"})
          .at_offset(0);
    const film_extent extent = container_extent(file);
    damaged_ = extent.size > file.size() || extent.damage != film_extent::nowhere;
    if (damaged_ && !recover) {
      if (extent.size > file.size())
        throw error(errc::format,
                    {"the ", codec, " file is truncated: it has ", file.size(), " bytes of at least ",
                     extent.size, "; write video{.recover = true} for what can be had"});
      throw error(errc::format, {"the ", codec,
                                 " file is damaged: its container's parts do not fit together here; write "
                                 "video{.recover = true} for what can be had"})
          .at_offset(extent.damage);
    }
    // The demuxer allocates for what a header claims, before frames are counted.
    constexpr std::uint64_t always = 1u << 22;
    if (extent.claimed > std::max<std::uint64_t>(limits.frames, always))
      throw error(errc::limit,
                  {"the ", codec, " file's header has a few bytes that stand for ", extent.claimed,
                   " frames or names; to allow it, set .limits = {.frames = ...} of the codec"});
    std::optional<film_identity> identity;
    if (keep != 0 && !damaged_) identity = film_identity_of(file, container);
    if (identity && find_kept(*identity, limits, orient)) return;
    film_demuxer demuxer(file, container, {extent.lost.data(), extent.lost.size()});
    AVStream& stream = demuxer.stream();
    read_header(stream, limits, orient, codec);
    read_packets(demuxer, stream, limits, recover, codec);
    if (!damaged_ && container == film_container::mp4 && has_more_than(stream, file.size())) {
      if (!recover)
        throw error(errc::format, {"the ", codec, " file is truncated: it has ", file.size(),
                                   " bytes, and frames that lie behind them"});
      damaged_ = true;
    }
    if (index_.packets().empty()) throw error(errc::format, {"the ", codec, " file has no frames"});
    index_.finish();
    // Copies are of the packets themselves, and so is what a packet of VP8 says of itself.
    const bool vp8_in_mp4 = container == film_container::mp4 && parameters_->codec_id == AV_CODEC_ID_VP8;
    if (identity && !damaged_ && copies_.empty() && !vp8_in_mp4) {
      kept_ = shared<const kept_film>(
          new kept_film{index_, std::move(parameters_), stored_, orientation_of(stream)});
      index_ = {};  // the copy has no room to grow, and is used from now on
      kept_indexes<kept_film>::of_process().keep(*identity, kept_, keep);
    }
  }

  [[nodiscard]] const frame_index& index() const noexcept { return kept_ ? kept_->index : index_; }
  [[nodiscard]] const AVCodecParameters& parameters() const noexcept {
    return kept_ ? *kept_->parameters : *parameters_;
  }
  /// The size of a frame, before it is turned; 0 until `set_size` if only the frames themselves say it.
  [[nodiscard]] const image_size& stored() const noexcept { return stored_; }
  [[nodiscard]] bool knows_size() const noexcept { return stored_.width != 0; }
  void set_size(const image_size& size, const film_limits& limits, std::string_view codec) {
    check_image_size(size, 3, {limits.width, limits.height, limits.bytes}, codec);
    stored_ = size;
  }
  [[nodiscard]] orientation turn() const noexcept { return turn_; }
  [[nodiscard]] bool damaged() const noexcept { return damaged_; }
  [[nodiscard]] bytes_view bytes_of(const film_packet& packet) const noexcept {
    const bytes_view from = packet.copied ? bytes_view(copies_.data(), copies_.size()) : file_;
    return from.subspan(static_cast<std::size_t>(packet.offset), packet.size);
  }

 private:
  /// Whether the process has the index, and the film is within the limits; else, the whole way says what is
  /// wrong.
  [[nodiscard]] bool find_kept(const film_identity& identity, const film_limits& limits, bool orient) {
    auto found = kept_indexes<kept_film>::of_process().find(identity);
    if (!found || found->index.packets().size() > limits.frames) return false;
    const image_size size = found->stored;
    if (size.width > limits.width || size.height > limits.height ||
        std::uint64_t{size.width} * size.height * 3 > limits.bytes)
      return false;
    kept_ = std::move(found);
    stored_ = size;
    turn_ = orient ? kept_->turn : orientation::upright;
    return true;
  }

  void read_header(const AVStream& stream, const film_limits& limits, bool orient, std::string_view codec) {
    if (!parameters_) parameters_.reset(avcodec_parameters_alloc());
    check_memory(parameters_.get());
    const AVCodecParameters& from = *stream.codecpar;
    if (!known_film_codec(from.codec_id))
      throw error(errc::format,
                  {"the ", codec, " file's frames are of the codec ", avcodec_get_name(from.codec_id),
                   ", which is not among those that are decoded here: H.264, HEVC, VP8, VP9, AV1, MPEG-1, "
                   "MPEG-2, MPEG-4, Motion JPEG, FFV1 and ProRes"});
    stored_ = {};
    if (from.width > 0 && from.height > 0)
      stored_ = {static_cast<std::uint32_t>(from.width), static_cast<std::uint32_t>(from.height)};
    if (knows_size()) check_image_size(stored_, 3, {limits.width, limits.height, limits.bytes}, codec);
    if (avcodec_parameters_copy(parameters_.get(), &from) < 0) throw std::bad_alloc();
    turn_ = orient ? orientation_of(stream) : orientation::upright;
    const AVRational unit = stream.time_base;
    if (unit.num <= 0 || unit.den <= 0)
      throw error(errc::format, {"the ", codec, " file's unit of time is no positive number"});
    index_.clear(unit.den, unit.num);
  }

  void read_packets(const film_demuxer& demuxer, const AVStream& stream, const film_limits& limits,
                    bool recover, std::string_view codec) {
    if (!packet_) packet_.reset(av_packet_alloc());
    check_memory(packet_.get());
    AVPacket& packet = *packet_;
    for (;;) {
      const int failed = demuxer.read(packet);
      if (failed == AVERROR_EOF) break;
      const struct release {
        AVPacket& packet;
        ~release() { av_packet_unref(&packet); }
      } after{packet};
      if (failed < 0 || (packet.stream_index == stream.index && (packet.flags & AV_PKT_FLAG_CORRUPT) != 0)) {
        if (!recover)
          throw error(errc::format,
                      {"the ", codec, " file is truncated or damaged behind packet ", index_.packets().size(),
                       ", whose frames are shown from ", std::to_string(last_time(stream)), " s on",
                       failed < 0 ? ": " + ffmpeg_error(failed) : std::string()});
        damaged_ = true;
        if (failed < 0) break;
      }
      if (packet.stream_index != stream.index || packet.size == 0) continue;
      if (index_.packets().size() == limits.frames)
        throw error(errc::limit, {"the ", codec, " file has more than ", limits.frames,
                                  " frames; to allow it, set .limits = {.frames = ...} of the codec"});
      add(packet, stream, codec);
    }
  }
  [[nodiscard]] double last_time(const AVStream& stream) const noexcept {
    return index_.packets().empty() ? 0
                                    : static_cast<double>(index_.packets().back().time) *
                                          stream.time_base.num / stream.time_base.den;
  }

  void add(const AVPacket& packet, const AVStream& stream, std::string_view codec) {
    // Tracks of mkv that are taken from AVI say when packets are decoded, which without B-frames is the same.
    const AVCodecID id = stream.codecpar->codec_id;
    const bool in_sequence = id == AV_CODEC_ID_MJPEG || id == AV_CODEC_ID_FFV1 || id == AV_CODEC_ID_PRORES;
    const std::int64_t time = packet.pts == AV_NOPTS_VALUE && in_sequence ? packet.dts : packet.pts;
    if (time == AV_NOPTS_VALUE)
      throw error(errc::format, {"the ", codec, " file does not say when packet ", index_.packets().size(),
                                 " is shown; convert it, as with ffmpeg -i film.mkv film.mp4"});
    // Parameters that change on the way come as side data, which packets of the file do not have.
    if (av_packet_get_side_data(&packet, AV_PKT_DATA_NEW_EXTRADATA, nullptr) != nullptr)
      throw error(errc::format, {"the ", codec, " file's parameters change at packet ",
                                 index_.packets().size(), "; encode it with one set of parameters"});
    // So that a small file that has the same bytes as many packets, or unpacks them, takes neither long nor
    // much.
    constexpr std::uint64_t most = 16;
    bytes_ += static_cast<std::uint64_t>(packet.size);
    if (bytes_ / most > file_.size())
      throw error(errc::format, {"the ", codec, " file's packets have more than ", most,
                                 " times as many bytes as the file itself"});
    film_packet own;
    own.time = time;
    own.duration = packet.duration;
    own.size = static_cast<std::uint32_t>(packet.size);
    own.key = (packet.flags & AV_PKT_FLAG_KEY) != 0;
    own.shown = (packet.flags & AV_PKT_FLAG_DISCARD) == 0;
    // A frame of VP8 can be there for others' sake alone (RFC 6386, 9.1).
    if (id == AV_CODEC_ID_VP8 && (packet.data[0] & 0x10) == 0) own.shown = false;
    const bytes_view bytes{reinterpret_cast<const std::byte*>(packet.data), own.size};
    if (!find_packet(file_, bytes, packet.pos, own.offset)) {
      own.copied = true;
      own.offset = copies_.size();
      copies_.insert(copies_.end(), bytes.begin(), bytes.end());
    }
    index_.add(own);
  }

  bytes_view file_;
  shared<const kept_film> kept_;  // in place of the next two
  frame_index index_;
  owned_parameters parameters_;
  owned_packet packet_;
  std::vector<std::byte> copies_;
  std::uint64_t bytes_ = 0;  // of all packets
  image_size stored_;
  orientation turn_ = orientation::upright;
  bool damaged_ = false;
};

}  // namespace detail

}  // namespace penstock::inline v0_1
