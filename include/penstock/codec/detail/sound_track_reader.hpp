// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<libavformat/avformat.h>) || !__has_include(<libavcodec/avcodec.h>)
#error "penstock/codec/detail/sound_track_reader.hpp needs FFmpeg's libraries: link penstock::video"
#endif

#include <penstock/audio/audio_limits.hpp>
#include <penstock/audio/operation.hpp>
#include <penstock/codec/detail/film_decoder.hpp>

/// Reads the sound of a film in memory, with FFmpeg's demuxers and decoders.
namespace penstock::inline v0_1::detail {

/// A packet of a film's sound.
struct sound_packet {
  std::uint64_t first = 0;  ///< the frames of the sound before its own
  std::uint64_t offset = 0;
  std::uint32_t size = 0;
  std::uint32_t skipped = 0, dropped = 0;  ///< frames at its beginning and end that do not count
  bool discarded = false;                  ///< none of its frames count
};

/// What a reader finds out of a film's sound, and the process keeps.
struct kept_sound_track {
  std::vector<sound_packet> packets;
  std::vector<std::byte> copies;  ///< of packets that are not in the file as they are: of all, or of none
  owned_parameters parameters;
  sound_form form;
  double begin_time = 0;  ///< of the first frame, in seconds of the film

  [[nodiscard]] std::uint64_t bytes() const noexcept {
    return sizeof *this + packets.capacity() * sizeof(sound_packet) + sizeof(AVCodecParameters) +
           static_cast<std::uint64_t>(parameters->extradata_size);
  }
};

/// How a part of a sound is decoded, so that it equals that of the whole.
enum class sound_seek : std::uint8_t {
  unknown,    ///< it is not decoded here
  anywhere,   ///< from the packet in which it begins
  second,     ///< from a second before, when what was before has no part in it any more
  beginning,  ///< from the beginning: the random generator of AAC's noise runs on from packet to packet
};
[[nodiscard]] constexpr sound_seek sound_seek_of(AVCodecID id) noexcept {
  switch (id) {
    case AV_CODEC_ID_PCM_U8:
    case AV_CODEC_ID_PCM_S16LE:
    case AV_CODEC_ID_PCM_S16BE:
    case AV_CODEC_ID_PCM_S24LE:
    case AV_CODEC_ID_PCM_S24BE:
    case AV_CODEC_ID_PCM_S32LE:
    case AV_CODEC_ID_PCM_S32BE:
    case AV_CODEC_ID_PCM_F32LE:
    case AV_CODEC_ID_PCM_F32BE:
    case AV_CODEC_ID_FLAC:
    case AV_CODEC_ID_ALAC:
      return sound_seek::anywhere;
    case AV_CODEC_ID_OPUS:
    case AV_CODEC_ID_VORBIS:
    case AV_CODEC_ID_MP3:
      return sound_seek::second;
    case AV_CODEC_ID_AAC:
      return sound_seek::beginning;
    default:
      return sound_seek::unknown;
  }
}

/// A sample of a decoder, `T`, as a real number.
template <class T>
[[nodiscard]] constexpr float decoded_sample(T value) noexcept {
  if constexpr (std::floating_point<T>)
    return static_cast<float>(value);
  else if constexpr (std::same_as<T, std::uint8_t>)
    return static_cast<float>(value - 128) / 128.0f;
  else if constexpr (std::same_as<T, std::int16_t>)
    return static_cast<float>(value) / 32'768.0f;
  else
    return static_cast<float>(value) / 2'147'483'648.0f;
}

/// The sound of one film at a time. Packets go through the decoder in order, and the frames of the last one
/// are kept, so that parts that follow each other are decoded once.
class sound_track_reader {
 public:
  static constexpr std::string_view codec = "sound_track";

  /// Throws `errc::format` for what is no film, has no sound, or is truncated or damaged; `errc::limit`.
  void open(bytes_view file, const audio_limits& limits, std::uint64_t keep, bool exact) {
    file_ = file;
    exact_ = exact;
    track_ = nullptr;
    restart();
    const film_container container = film_container_of(file);
    if (container == film_container::none)
      throw error(errc::format,
                  "this is no file with a sound track: it begins neither as mp4 nor as matroska")
          .at_offset(0);
    const film_extent extent = container_extent(file);
    if (extent.size > file.size())
      throw error(errc::format,
                  {"the video file is truncated: it has ", file.size(), " bytes of at least ", extent.size});
    if (extent.damage != film_extent::nowhere)
      throw error(errc::format, "the video file is damaged").at_offset(extent.damage);
    // The demuxer allocates for what a header claims.
    constexpr std::uint64_t most = 1u << 24;
    if (extent.claimed > most)
      throw error(errc::limit, {"the video file's header has a few bytes that stand for ", extent.claimed,
                                " packets or names"});
    const auto identity = keep == 0 ? std::optional<film_identity>() : film_identity_of(file, container);
    auto& kept = kept_indexes<kept_sound_track>::of_process();
    if (identity) track_ = kept.find(*identity);
    if (track_) return check_sound_form(track_->form, limits, name());
    auto* const made = new kept_sound_track;
    track_ = shared<const kept_sound_track>(made);
    try {
      find_packets(film_demuxer(file, container), container, *made, limits);
    } catch (...) {
      track_ = nullptr;
      throw;
    }
    if (identity && made->copies.empty()) kept.keep(*identity, track_, keep);
  }

  [[nodiscard]] const sound_form& form() const noexcept { return track_->form; }
  [[nodiscard]] double begin_time() const noexcept { return track_->begin_time; }
  [[nodiscard]] AVCodecID codec_id() const noexcept { return track_->parameters->codec_id; }

  /// The part lies within the sound.
  void draw(const sound_part& part, const sound_place& place) {
    const std::uint64_t end = part.first + part.frames;
    if (seek() == sound_seek::second && is_aac()) restart();  // so that the part alone says what its noise is
    for (std::uint64_t at = part.first; at < end;) {
      if (at >= held_first_ && at < held_first_ + held_) {
        const std::uint64_t from = at - held_first_, count = std::min(held_ - from, end - at);
        for (std::size_t c = 0; c < form().channels; ++c)
          std::memcpy(place.channel(c) + (at - part.first), samples() + c * room_ + from,
                      to_size(count) * sizeof(float));
        at += count;
        continue;
      }
      go_to(at);
      decode_next();
    }
  }
  /// Whether a part of the sound at hand may differ from that of the whole.
  [[nodiscard]] bool parts_differ() const noexcept {
    return is_aac() ? !exact_ : codec_id() == AV_CODEC_ID_OPUS;
  }

 private:
  [[nodiscard]] std::string_view name() const { return avcodec_get_name(track_->parameters->codec_id); }
  [[nodiscard]] bool is_aac() const noexcept { return codec_id() == AV_CODEC_ID_AAC; }
  [[nodiscard]] sound_seek seek() const noexcept {
    return is_aac() && !exact_ ? sound_seek::second : sound_seek_of(codec_id());
  }
  [[nodiscard]] float* samples() noexcept { return reinterpret_cast<float*>(memory_.data()); }
  void restart() noexcept {
    context_.reset();
    next_ = held_ = 0;
  }

  /// Decodes everything once: how many frames a packet has is known by nothing else for all codecs.
  void find_packets(const film_demuxer& demuxer, film_container container, kept_sound_track& to,
                    const audio_limits& limits) {
    AVStream& stream = demuxer.sound();
    to.parameters.reset(avcodec_parameters_alloc());
    check_memory(to.parameters.get());
    if (avcodec_parameters_copy(to.parameters.get(), stream.codecpar) < 0) throw std::bad_alloc();
    if (sound_seek_of(to.parameters->codec_id) == sound_seek::unknown)
      throw error(errc::format,
                  {"the file's sound is of the codec ", name(),
                   ", which is not among those that are decoded here: AAC, Opus, Vorbis, MP3, FLAC, ALAC and "
                   "PCM"});
    if (container == film_container::mp4 && has_more_than(stream, file_.size()))
      throw error(errc::format, {"the video file is truncated: it has ", file_.size(),
                                 " bytes, and sound that lies behind them"});
    open_decoder();
    context_->pkt_timebase = stream.time_base;
    unit_ = av_q2d(stream.time_base);
    begun_ = false;
    owned_packet own(av_packet_alloc());
    check_memory(own.get());
    AVPacket& packet = *own;
    std::uint64_t all = 0;  // bytes of packets
    for (;;) {
      const int failed = demuxer.read(packet);
      const struct release {
        AVPacket& packet;
        ~release() { av_packet_unref(&packet); }
      } after{packet};
      const bool last = failed == AVERROR_EOF;
      if ((failed < 0 && !last) || (packet.flags & AV_PKT_FLAG_CORRUPT) != 0) refuse(to.form.frames);
      if (!last && (packet.stream_index != stream.index || packet.size == 0)) continue;
      if (!last) {
        const bytes_view bytes{reinterpret_cast<const std::byte*>(packet.data),
                               static_cast<std::size_t>(packet.size)};
        sound_packet one{.first = to.form.frames, .size = static_cast<std::uint32_t>(packet.size)};
        one.discarded = (packet.flags & AV_PKT_FLAG_DISCARD) != 0;
        // As for pictures: a small file can have the same bytes as many packets.
        constexpr std::uint64_t most = 16;
        if ((all += bytes.size()) / most > file_.size())
          throw error(errc::format, {"the packets of the file's sound have more than ", most,
                                     " times as many bytes as the file itself"});
        if (!find_packet(file_, bytes, packet.pos, one.offset) || !to.copies.empty()) copy(to, one, bytes);
        if (const auto* const side = av_packet_get_side_data(&packet, AV_PKT_DATA_SKIP_SAMPLES, nullptr);
            side != nullptr) {
          const auto* const values = reinterpret_cast<const std::byte*>(side);
          one.skipped = load_little<std::uint32_t>(values);
          one.dropped = load_little<std::uint32_t>(values + 4);
        }
        to.packets.push_back(one);
      }
      if (avcodec_send_packet(context_.get(), last ? nullptr : &packet) < 0) refuse(to.form.frames);
      for (int got = 0; (got = receive()) != AVERROR(EAGAIN) && got != AVERROR_EOF;) {
        if (got < 0) refuse(to.form.frames);
        count_frame(to, limits);
      }
      if (last) break;
    }
    check_sound_form(to.form, limits, name());
    to.packets.shrink_to_fit();
    restart();
  }
  /// All packets are copied once one is.
  void copy(kept_sound_track& to, sound_packet& one, bytes_view bytes) const {
    if (to.copies.empty())
      for (sound_packet& before : to.packets) {
        const bytes_view old = file_.subspan(to_size(before.offset), before.size);
        before.offset = to.copies.size();
        to.copies.insert(to.copies.end(), old.begin(), old.end());
      }
    one.offset = to.copies.size();
    to.copies.insert(to.copies.end(), bytes.begin(), bytes.end());
  }
  void count_frame(kept_sound_track& to, const audio_limits& limits) {
    const AVFrame& frame = *frame_;
    const bool timed = frame.pts != AV_NOPTS_VALUE;
    const double time = static_cast<double>(frame.pts) * unit_;
    if (!begun_) {
      to.form.rate = static_cast<std::uint32_t>(std::max(frame.sample_rate, 0));
      to.form.channels = channels_of(frame);
      to.begin_time = timed ? time : 0;
      begun_ = true;
    }
    check_form(to.form);
    const double expected = to.begin_time + to.form.seconds();
    constexpr double most = 0.1;
    if (timed && std::abs(time - expected) > most)
      throw error(errc::format, {"the file's sound goes on at ", std::to_string(time),
                                 " s, and its frames before end at ", std::to_string(expected),
                                 " s; close the gap, as with ffmpeg -i film.mp4 -c:v copy -af "
                                 "aresample=async=1000 whole.mp4"});
    to.form.frames += static_cast<std::uint64_t>(frame.nb_samples);
    check_sound_form(to.form, limits, name());
  }
  void check_form(const sound_form& form) const {
    if (static_cast<std::uint32_t>(std::max(frame_->sample_rate, 0)) != form.rate ||
        channels_of(*frame_) != form.channels)
      throw error(errc::format, "the rate or the channels of the file's sound change on the way");
  }
  [[nodiscard]] static std::uint32_t channels_of(const AVFrame& frame) noexcept {
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(57, 24, 100)
    return static_cast<std::uint32_t>(frame.ch_layout.nb_channels);
#else
    return static_cast<std::uint32_t>(frame.channels);
#endif
  }
  [[noreturn, gnu::cold]] void refuse(std::uint64_t frame) const {
    const std::uint32_t rate = track_->form.rate;
    const double seconds = track_->begin_time + (rate == 0 ? 0 : static_cast<double>(frame) / rate);
    throw error(errc::format, {"the file's sound cannot be decoded at ", std::to_string(seconds),
                               " s: the file is truncated or damaged there or before"});
  }

  void open_decoder() {
    restart();
    const AVCodecParameters& parameters = *track_->parameters;
    const AVCodec* const decoder = avcodec_find_decoder(parameters.codec_id);
    if (decoder == nullptr)
      throw error(errc::argument, {"this FFmpeg was built without a decoder of ", name()});
    context_.reset(avcodec_alloc_context3(decoder));
    if (!frame_) frame_.reset(av_frame_alloc());
    if (!packet_) packet_.reset(av_packet_alloc());
    check_memory(context_.get());
    check_memory(frame_.get());
    check_memory(packet_.get());
    if (avcodec_parameters_to_context(context_.get(), &parameters) < 0) throw std::bad_alloc();
    context_->thread_count = 1;
    context_->log_level_offset = 100;  // errors are thrown, not printed
    context_->err_recognition |= AV_EF_CRCCHECK | AV_EF_EXPLODE;
    if (const int failed = avcodec_open2(context_.get(), decoder, nullptr); failed < 0) {
      context_.reset();
      throw error(errc::format,
                  {"the file's parameters of sound are none of ", name(), ": ", ffmpeg_error(failed)});
    }
  }
  [[nodiscard]] int receive() noexcept { return avcodec_receive_frame(context_.get(), frame_.get()); }

  /// Makes the packet with a frame the next one, or one before from which it is decoded right.
  void go_to(std::uint64_t frame) {
    const std::vector<sound_packet>& packets = track_->packets;
    const auto packet_of = [&](std::uint64_t f) {
      const auto after = std::upper_bound(packets.begin(), packets.end(), f,
                                          [](std::uint64_t a, const sound_packet& p) { return a < p.first; });
      return static_cast<std::size_t>(after - packets.begin()) - 1;
    };
    const std::size_t wanted = packet_of(frame);
    const sound_seek how = seek();
    std::size_t from = 0;
    if (how == sound_seek::anywhere) from = wanted;
    if (how == sound_seek::second && frame > form().rate) from = packet_of(frame - form().rate);
    if (context_ && next_ <= wanted && next_ >= from) return;
    open_decoder();
    next_ = from;
    right_from_ = from == 0 ? 0 : wanted;
  }
  /// Holds the frames of the next packet.
  void decode_next() {
    const std::vector<sound_packet>& packets = track_->packets;
    const sound_packet& one = packets[next_];
    const bool right = next_ >= right_from_, last = next_ + 1 == packets.size();
    const std::uint64_t expected = (last ? form().frames : packets[next_ + 1].first) - one.first;
    ++next_;
    held_ = 0;
    held_first_ = one.first;
    int result = send(one);
    for (bool drained = false; result >= 0;) {
      result = receive();
      if (result >= 0) hold(one);
      if (result == AVERROR(EAGAIN) && last && !std::exchange(drained, true))
        result = avcodec_send_packet(context_.get(), nullptr);
    }
    if (last) context_.reset();  // a decoder gives nothing after its end
    const bool failed = (result != AVERROR(EAGAIN) && result != AVERROR_EOF) || held_ != expected;
    if (!right) held_ = 0;
    if (failed && right) {
      restart();
      refuse(one.first);
    }
  }
  [[nodiscard]] int send(const sound_packet& one) {
    AVPacket& packet = *packet_;
    const bytes_view bytes =
        (track_->copies.empty() ? file_ : bytes_view(track_->copies.data(), track_->copies.size()))
            .subspan(to_size(one.offset), one.size);
    if (av_new_packet(&packet, static_cast<int>(one.size)) < 0) throw std::bad_alloc();
    std::memcpy(packet.data, bytes.data(), bytes.size());
    packet.flags = AV_PKT_FLAG_KEY | (one.discarded ? AV_PKT_FLAG_DISCARD : 0);
    if (one.skipped != 0 || one.dropped != 0) {
      auto* const side = av_packet_new_side_data(&packet, AV_PKT_DATA_SKIP_SAMPLES, 10);
      check_memory(side);
      std::memset(side, 0, 10);
      store_little(reinterpret_cast<std::byte*>(side), one.skipped);
      store_little(reinterpret_cast<std::byte*>(side) + 4, one.dropped);
    }
    const int result = avcodec_send_packet(context_.get(), &packet);
    av_packet_unref(&packet);
    return result;
  }
  void hold(const sound_packet& one) {
    const AVFrame& frame = *frame_;
    check_form(form());
    const auto count = static_cast<std::uint64_t>(frame.nb_samples);
    if (held_ + count > room_ || room_ * form().channels * sizeof(float) > memory_.size()) {
      if (held_ != 0 && held_ + count > form().frames) refuse(one.first);
      grow(held_ + count);
    }
    switch (static_cast<AVSampleFormat>(frame.format)) {
      case AV_SAMPLE_FMT_FLT:
      case AV_SAMPLE_FMT_FLTP:
        take<float>(frame);
        break;
      case AV_SAMPLE_FMT_S16:
      case AV_SAMPLE_FMT_S16P:
        take<std::int16_t>(frame);
        break;
      case AV_SAMPLE_FMT_S32:
      case AV_SAMPLE_FMT_S32P:
        take<std::int32_t>(frame);
        break;
      case AV_SAMPLE_FMT_U8:
      case AV_SAMPLE_FMT_U8P:
        take<std::uint8_t>(frame);
        break;
      default:
        throw error(errc::format, {"the file's sound has samples of a format, number ", frame.format,
                                   ", that is not known here"});
    }
    held_ += count;
  }
  /// Keeps what is held.
  void grow(std::uint64_t room) {
    buffer larger;
    larger.resize_for_overwrite(to_size(room) * form().channels * sizeof(float));
    if (held_ != 0)
      for (std::size_t c = 0; c < form().channels; ++c)
        std::memcpy(reinterpret_cast<float*>(larger.data()) + c * room, samples() + c * room_,
                    to_size(held_) * sizeof(float));
    std::swap(memory_, larger);
    room_ = to_size(room);
  }
  template <class T>
  void take(const AVFrame& frame) {
    const std::size_t channels = form().channels;
    const bool planar = av_sample_fmt_is_planar(static_cast<AVSampleFormat>(frame.format)) != 0;
    for (std::size_t c = 0; c < channels; ++c) {
      float* const to = samples() + c * room_ + held_;
      const auto* const from =
          reinterpret_cast<const T*>(frame.extended_data[planar ? c : 0]) + (planar ? 0 : c);
      const std::size_t step = planar ? 1 : channels;
      for (std::size_t i = 0; i < static_cast<std::size_t>(frame.nb_samples); ++i)
        to[i] = decoded_sample(from[i * step]);
    }
  }

  bytes_view file_;
  shared<const kept_sound_track> track_;
  std::unique_ptr<AVCodecContext, free_codec> context_;
  owned_frame frame_;
  owned_packet packet_;
  std::size_t next_ = 0;          // the packet that is decoded next
  std::size_t right_from_ = 0;    // the first one whose frames are those of the whole
  std::uint64_t held_first_ = 0;  // the frames of the packet before, which are held
  std::uint64_t held_ = 0;
  std::size_t room_ = 0;  // for so many frames of each channel
  buffer memory_;
  double unit_ = 0;
  bool begun_ = false;
  bool exact_ = true;
};

}  // namespace penstock::inline v0_1::detail
