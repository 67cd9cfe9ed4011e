// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<libavformat/avformat.h>) || !__has_include(<libswscale/swscale.h>)
#error "penstock/codec/video.hpp needs FFmpeg's libraries: link penstock::video"
#endif

#include <penstock/codec/detail/film_decoder.hpp>

namespace penstock::inline v0_1 {

/// The per-worker memory of `video`: the film at hand, and a decoder, which is kept as long as films have the
/// same parameters.
class video_scratch : public detail::decoder_scratch<"video"> {
 public:
  [[nodiscard]] const detail::film_reader& reader() const noexcept {
    return opened_ != nullptr ? *opened_ : reader_;
  }
  [[nodiscard]] buffer& clip() noexcept { return clip_; }
  /// A film that is open already, and stays so as long as it is used here.
  void take(const detail::film_reader& opened, film_device device) {
    next();
    decoder_.use(device);
    if (opened.damaged()) damage();
    opened_ = &opened;
  }
  /// What was opened last, for others to take.
  [[nodiscard]] detail::film_reader give() noexcept { return std::move(reader_); }

  /// Opens a file. Where neither header nor index say how large frames are, as with MPEG-4 in mp4, the first
  /// one is decoded to know it.
  void open(bytes_view file, const film_limits& limits, bool orient, bool recover, std::uint64_t keep,
            film_device device) {
    next();
    opened_ = nullptr;
    decoder_.use(device);
    reader_.open(file, limits, orient, recover, codec, keep);
    if (reader_.damaged()) damage();
    if (reader_.knows_size()) return;
    const std::span<const film_packet> packets = reader_.index().packets();
    image_size found;
    if (!packets.empty()) {
      decoder_.open(reader_.parameters(), reader_.index().reordered(), limits.bytes / 3, recover);
      decoder_.restart();
      if (decoder_.send(reader_.bytes_of(packets[0]), true, true, true, 0, 0) >= 0) {
        decoder_.finish();
        if (decoder_.receive() == 0) found = decoder_.size();
      }
    }
    reader_.set_size(found, limits, codec);
  }

  /// Decodes frames, and calls draw(i) when the picture is frames[i].
  template <class Draw>
  void each_of(std::span<const std::uint32_t> frames, const job_type& what, std::uint64_t max_pixels,
               const Draw& draw) {
    const frame_index& index = reader().index();
    wanted_.clear();
    for (std::size_t i = 0; i < frames.size(); ++i) {
      if (frames[i] >= index.frames()) [[unlikely]]
        throw error(errc::argument,
                    {"frame ", frames[i], " is wanted of a film of ", index.frames(), " frames"});
      wanted_.push_back({index.packet_of(frames[i]), i, false});
    }
    std::sort(wanted_.begin(), wanted_.end(), [](const wanted_frame& a, const wanted_frame& b) {
      return a.packet != b.packet ? a.packet < b.packet : a.place < b.place;
    });
    const struct forget {
      video_scratch& scratch;
      ~forget() { scratch.shows_ = showing::nothing; }
    } after{*this};
    for (std::size_t i = 0, end = 0; i < wanted_.size(); i = end) {
      decode_range range = index.packets_for(index.frame_of(wanted_[i].packet));
      for (end = i + 1; end < wanted_.size(); ++end) {
        const decode_range next = index.packets_for(index.frame_of(wanted_[end].packet));
        if (next.first > range.last + 1) break;
        range = {std::min(range.first, next.first), next.last};
      }
      decode_group(range, {wanted_.data() + i, end - i}, what, max_pixels, draw);
    }
  }

  /// For `stored_image`: the picture at hand.
  template <pixel_format Format>
  [[nodiscard]] pixel_view<std::uint8_t, 3> decode(const job_type& what, const image_part& part) {
    switch (shows_) {
      case showing::frame:
        return decoder_.pixels(image.pixels).part(part);
      case showing::black:
        return decoder_.black(image.pixels, what.stored).part(part);
      case showing::nothing:
        break;
    }
    throw error(
        errc::argument,
        "a frame of a clip was read before the clip was written; an operation on clips may not look at "
        "pixels when it is called");
  }

 private:
  struct wanted_frame {
    std::uint32_t packet;
    std::size_t place;
    bool done;
  };
  enum class showing : std::uint8_t { nothing, frame, black };

  template <class Draw>
  void decode_group(decode_range range, std::span<wanted_frame> wanted, const job_type& what,
                    std::uint64_t max_pixels, const Draw& draw) {
    const frame_index& index = reader().index();
    // Files call frames key frames that decoders cannot begin with; then it is the groups before that are
    // missing. So damage is made do with when some of these did not mend it.
    bool recover = false;
    for (std::uint32_t groups = 1;; groups *= 2) {
      try {
        decoder_.open(reader().parameters(), index.reordered(), max_pixels, recover);
      } catch (const error&) {
        if (recover == what.recover) throw;
        recover = true;
        damage();
        continue;
      }
      if (decode_packets(range, wanted, what, recover, draw)) return;
      if (range.first == 0 && recover == what.recover) return give_up(wanted, what, draw);
      range.first = index.earlier(range.first, groups);
      recover = what.recover && (range.first == 0 || groups > 1);
    }
  }
  /// Whether all wanted frames were there.
  template <class Draw>
  bool decode_packets(const decode_range& range, std::span<wanted_frame> wanted, const job_type& what,
                      bool recover, const Draw& draw) {
    const frame_index& index = reader().index();
    const std::span<const film_packet> packets = index.packets();
    const std::int64_t begin = packets[range.first].time;
    std::int64_t latest = -1;  // of the frames that came out
    std::size_t left = 0;
    for (const wanted_frame& one : wanted) left += one.done ? 0 : 1;
    // Gives what the decoder has; false if a frame is damaged that others are made of.
    const auto take = [&](bool tolerant) {
      for (int got = 0; (got = decoder_.receive()) != AVERROR(EAGAIN) && got != AVERROR_EOF;) {
        if (got < 0) return tolerant || recover;
        const std::int64_t number = decoder_.frame();
        if (number < 0 || number >= std::int64_t{index.frames()}) continue;
        const std::uint32_t packet = index.packet_of(static_cast<std::uint32_t>(number));
        if (decoder_.damaged()) {
          if (packets[packet].time < begin) continue;  // of the group before, which is not wanted here
          if (!recover) return false;
          damage();
        } else if (packets[packet].time >= begin) {
          if (number < latest) refuse_order(number, what);
          latest = number;
        }
        left -= show(packet, wanted, what, draw);
      }
      return true;
    };
    decoder_.restart();
    auto next = wanted.begin();
    for (std::uint32_t i = range.first; i <= range.last && left != 0; ++i) {
      const film_packet& packet = packets[i];
      while (next != wanted.end() && next->packet < i) ++next;
      const bool tolerant = packet.time < begin;
      const int sent = decoder_.send(reader().bytes_of(packet), packet.shown, packet.key,
                                     next != wanted.end() && next->packet == i, index.frame_of(i), i);
      if (sent < 0 && !tolerant) {
        if (!recover) return false;
        damage();
      }
      if (!take(tolerant)) return false;
    }
    if (left != 0) {
      decoder_.finish();
      if (!take(false)) return false;
    }
    return left == 0;
  }
  /// Decoders give frames in the order in which they are shown, whatever the file says.
  void refuse_order(std::int64_t number, const job_type& what) {
    if (what.recover) return damage();
    const auto frame = static_cast<std::uint32_t>(number);
    throw error(errc::format,
                {"frame ", frame, " of the video file, at ", std::to_string(reader().index().time_of(frame)),
                 " s, is shown after later ones: the file's times are those of decoding; encode it again, as "
                 "with ffmpeg -i film.mkv film.mp4"});
  }
  /// Draws the picture at hand wherever it is wanted; returns at how many places.
  template <class Draw>
  std::size_t show(std::uint32_t packet, std::span<wanted_frame> wanted, const job_type& what,
                   const Draw& draw) {
    std::size_t shown = 0;
    auto one = std::lower_bound(wanted.begin(), wanted.end(), packet,
                                [](const wanted_frame& w, std::uint32_t p) { return w.packet < p; });
    for (; one != wanted.end() && one->packet == packet; ++one) {
      if (one->done) continue;
      if (decoder_.size() != what.stored)
        throw error(errc::format,
                    {"a frame of the video file is ", decoder_.size().width, " x ", decoder_.size().height,
                     ", and its header says ", what.stored.width, " x ", what.stored.height});
      shows_ = showing::frame;
      draw(one->place);
      one->done = true;
      ++shown;
    }
    return shown;
  }
  template <class Draw>
  void give_up(std::span<wanted_frame> wanted, const job_type& what, const Draw& draw) {
    decoder_.close();
    for (wanted_frame& one : wanted) {
      if (one.done) continue;
      const std::uint32_t frame = reader().index().frame_of(one.packet);
      if (!what.recover)
        throw error(errc::format, {"frame ", frame, " of the video file, at ",
                                   std::to_string(reader().index().time_of(frame)),
                                   " s, cannot be decoded: the file is damaged there or before"});
      damage();
      shows_ = showing::black;
      draw(one.place);
      one.done = true;
    }
  }

  detail::film_reader reader_;
  const detail::film_reader* opened_ = nullptr;  // in its place
  detail::film_decoder decoder_;
  buffer clip_;
  std::vector<wanted_frame> wanted_;
  showing shows_ = showing::nothing;
};

/// What `video` decodes to: a film whose header and index are read. Valid until the worker's next `decode`.
/// Operations as `clip` choose frames of it; other functions get its `film_facts`.
class film {
 public:
  using unfinished = void;
  using is_lazy_film = void;
  using picture_type = detail::stored_image<video_scratch, rgb8>;

  film(video_scratch& scratch, const detail::image_job& what, std::uint64_t max_pixels) noexcept
      : scratch_(&scratch), job_(what), max_pixels_(max_pixels) {}

  [[nodiscard]] film_facts facts() const noexcept {
    const frame_index& index = scratch_->reader().index();
    const double begin = index.begin_time(), duration = index.end_time() - begin;
    return {index.frames(), oriented(job_.stored, job_.turn), duration > 0 ? index.frames() / duration : 0,
            begin, duration};
  }
  [[nodiscard]] film_facts finish() const noexcept { return facts(); }
  [[nodiscard]] std::uint64_t frames() const noexcept { return scratch_->reader().index().frames(); }
  /// The bytes of its file.
  [[nodiscard]] bytes_view file() const noexcept { return job_.file; }
  /// When frame n begins to be shown, in seconds. n is below `frames()`.
  [[nodiscard]] double time_of(std::uint64_t n) const noexcept {
    return scratch_->reader().index().time_of(static_cast<std::uint32_t>(n));
  }
  /// When frame n ceases to be shown.
  [[nodiscard]] double end_of(std::uint64_t n) const noexcept {
    return n + 1 < frames() ? time_of(n + 1) : scratch_->reader().index().end_time();
  }
  /// The frame that is shown at this second; `frames()` if none is.
  [[nodiscard]] std::uint64_t frame_at(double seconds) const noexcept {
    return scratch_->reader().index().frame_at(seconds);
  }
  [[nodiscard]] picture_type picture() const noexcept { return {*scratch_, job_}; }
  [[nodiscard]] buffer& memory() const noexcept { return scratch_->clip(); }
  template <class Draw>
  void each_of(std::span<const std::uint32_t> frames, const Draw& draw) const {
    detail::naming_codec(video_scratch::codec, [&] { scratch_->each_of(frames, job_, max_pixels_, draw); });
  }

 private:
  video_scratch* scratch_;
  detail::image_job job_;
  std::uint64_t max_pixels_;
};

/// Films in mp4, mov, mkv and webm files, decoded with FFmpeg, one thread for each worker.
///
/// In: any byte element. Out: a lazy film, of which `clip`, `random_clip`, `uniform_frames`, `frames_at` and
/// `frames_played_at` make clips; a function of yours gets its `film_facts`. `decode` reads the header and
/// the packets' times, and decodes no frame. Frames are numbered as they are shown: by their presentation
/// times, which edit lists have moved. A clip decodes the groups of pictures that it needs, each once, from
/// their key frames to the last frame that it wants, so that frames in any order equal those of the film in
/// sequence, to the bit.
/// Frames that no other frame needs, and that are not wanted, are not decoded, where the codec says which
/// they are (H.264, MPEG-1, 2 and 4).
/// Files: of the containers' codecs H.264, HEVC, VP8, VP9, AV1, MPEG-1, MPEG-2, MPEG-4, Motion JPEG, FFV1 and
/// ProRes, those for which FFmpeg was built; the stream of the most pixels, turned as the file says. No other
/// demuxer, and no file or address that the film names, is opened. A change of size within a film is an
/// error. Interlaced frames stay so, and pixels that are not square, too.
/// Pixels: RGB by libswscale, bilinear where colours have fewer pixels and nothing faster applies, by the
/// matrix and range that the stream names, BT.601 of 16 to 235 without; as TorchCodec on the CPU, and `ffmpeg
/// -pix_fmt rgb24`.
/// Kind: pointwise, keeps all guarantees. Cost: the demuxer's pass over the file when the process first meets
/// it, then a hash of what its container says; and the decoder's work.
/// Memory per worker: 40 bytes a packet, the decoder's pictures, one frame in RGB, and the packets of files
/// whose bytes the container changes; of the process, `index_memory`. Thread-safe, with a scratch per thread.
/// Throws `errc::format` for what is no film, and for truncated and damaged files: parts of a container that
/// do not fit together, with their offset; a frame of which FFmpeg, or FFV1's checksums, say that it is not
/// as it was encoded, with its number and second; frames that come out in another order than their times.
/// Damage that changes pixels and breaks no rule of the codec is not seen. `errc::limit` for sizes and
/// numbers beyond `limits`, before anything is allocated for them but FFmpeg's index, of 24 bytes for each
/// frame that the header claims; `errc::argument` if FFmpeg was built without the decoder.
/// FFmpeg's demuxers write to the standard error stream what they think of damaged files, unless the program
/// calls `av_log_set_level`.
/// Source: libavformat, libavcodec and libswscale of FFmpeg 4.4 to 8.
///
///     auto clips = records | decode<video>(video{.limits = {.width = 4096, .height = 4096}}) |
///                  map(random_clip(8, {.stride = 2}), resize(112, 112)) | batch(1);
struct video {
  /// Of width, height, bytes of a frame, and frames.
  film_limits limits{};
  /// Turns frames as the file says.
  bool orient = true;
  /// Takes the frames that are there of truncated and damaged files, and counts each film as a warning in the
  /// run's counters. Frames that are damaged are what FFmpeg makes of them; missing ones are black.
  bool recover = false;
  /// The bytes of indexes that the process keeps, of the films that were used last: about 48 for each frame;
  /// 0 to make each anew.
  std::uint64_t index_memory = std::uint64_t{1} << 28;
  /// What decodes. With `cuda`, frames that are wanted come back to memory, and become RGB there; what the
  /// GPU does not take, as 10 bits of H.264, the CPU decodes where FFmpeg's decoder can. Without a GPU
  /// `decode`
  /// throws `errc::argument`. This has been compiled, and never run on a GPU.
  film_device device = film_device::cpu;

  static constexpr std::string_view codec_name = "video";
  static constexpr std::string_view extensions[] = {"mp4", "mkv", "webm", "mov", "m4v"};
  static constexpr bool one_at_a_time = true;
  using scratch = video_scratch;

  [[nodiscard]] static bool recognises(bytes_view bytes) noexcept {
    return detail::film_container_of(bytes) != detail::film_container::none;
  }

  template <byte_element Bytes>
  [[nodiscard]] film decode(const Bytes& in, scratch& s) const {
    const bytes_view file = as_bytes(in);
    s.open(file, limits, orient, recover, index_memory, device);
    return {s, {file, s.reader().stored(), s.reader().turn(), recover}, limits.bytes / 3};
  }

  /// A film's header and index, which `read_index` makes once for any number of clips, in any thread. The
  /// file's bytes must outlive it.
  using index_type = detail::film_reader;
  [[nodiscard]] index_type read_index(bytes_view file) const {
    scratch s;
    s.open(file, limits, orient, recover, index_memory, device);
    return s.give();
  }
  /// The film of an index, which must outlive it: as `decode` of its file, but nothing is read.
  [[nodiscard]] film film_of(const index_type& index, scratch& s) const {
    s.take(index, device);
    return {s, {{}, index.stored(), index.turn(), recover}, limits.bytes / 3};
  }
};

}  // namespace penstock::inline v0_1
