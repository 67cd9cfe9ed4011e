// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<libswscale/swscale.h>)
#error "penstock/codec/detail/film_decoder.hpp needs FFmpeg's libraries: link penstock::video"
#endif

#include <penstock/codec/detail/film_reader.hpp>

extern "C" {
#include <libavutil/crc.h>
#include <libavutil/hwcontext.h>
#include <libswscale/swscale.h>
}

/// Decodes packets of a film, with FFmpeg's decoders, and makes RGB of their frames.
namespace penstock::inline v0_1 {

/// What decodes the frames of films.
///   cpu   FFmpeg's decoders
///   cuda  the decoder of an NVIDIA GPU (NVDEC), by FFmpeg's hwaccel; frames that are wanted come back to memory
enum class film_device : std::uint8_t { cpu, cuda };

namespace detail {

struct free_codec {
  void operator()(AVCodecContext* c) const noexcept { avcodec_free_context(&c); }
};
struct free_scaler {
  void operator()(SwsContext* c) const noexcept { sws_freeContext(c); }
};
struct free_reference {
  void operator()(AVBufferRef* r) const noexcept { av_buffer_unref(&r); }
};

/// One that decodes for CUDA; null if this FFmpeg has none. Decoders of other libraries do not.
[[nodiscard]] inline const AVCodec* cuda_decoder(AVCodecID id) noexcept {
  void* place = nullptr;
  while (const AVCodec* const codec = av_codec_iterate(&place)) {
    if (codec->id != id || av_codec_is_decoder(codec) == 0) continue;
    for (int i = 0; const AVCodecHWConfig* const config = avcodec_get_hw_config(codec, i); ++i)
      if (config->device_type == AV_HWDEVICE_TYPE_CUDA &&
          (config->methods & AV_CODEC_HW_CONFIG_METHOD_HW_DEVICE_CTX) != 0)
        return codec;
  }
  return nullptr;
}

/// Whether a packet of FFV1, from version 3 on, is as it was written; FFmpeg checks that, and only prints it.
/// Slices end with their size, and mostly with a checksum. Source: RFC 9043, 4.8.
[[nodiscard]] inline bool is_whole_ffv1(bytes_view packet) noexcept {
  const auto slices = [&](std::size_t trailer) {
    for (std::size_t end = packet.size(); end != 0;) {
      if (end < trailer) return false;
      const std::uint64_t size = big_endian(packet, end - trailer, 3) + trailer;
      if (size > end) return false;
      end -= static_cast<std::size_t>(size);
      if (trailer != 3 && av_crc(av_crc_get_table(AV_CRC_32_IEEE), 0,
                                 reinterpret_cast<const std::uint8_t*>(packet.data()) + end, size) != 0)
        return false;
    }
    return true;
  };
  return slices(3) || slices(8);
}

/// A decoder of FFmpeg, which is kept as long as films have the same parameters.
class film_decoder {
 public:
  /// What decodes from now on. Throws `errc::argument` if there is no such device.
  void use(film_device device) {
    const bool wanted = device == film_device::cuda;
    if (wanted == (device_ != nullptr)) return;
    close();
    device_.reset();
    if (!wanted) return;
    AVBufferRef* made = nullptr;
    if (const int failed = av_hwdevice_ctx_create(&made, AV_HWDEVICE_TYPE_CUDA, nullptr, nullptr, 0);
        failed < 0)
      throw error(errc::argument,
                  {"video{.device = film_device::cuda} needs an NVIDIA GPU, its driver, and an "
                   "FFmpeg that was built for them, and FFmpeg finds none: ",
                   ffmpeg_error(failed)});
    device_.reset(made);
  }
  /// Throws `errc::argument` if this FFmpeg has no decoder of the codec, and `errc::format` if it does not
  /// take the parameters.
  void open(const AVCodecParameters& parameters, unsigned reordered, std::uint64_t max_pixels, bool recover) {
    // FFmpeg's decoders of FFV1 and VP8 do not forget all, and fill gaps of damaged films with it.
    if (context_ && recover == recover_ && reordered == reordered_ && max_pixels == max_pixels_ &&
        same(*parameters_, parameters) && parameters.codec_id != AV_CODEC_ID_FFV1 &&
        parameters.codec_id != AV_CODEC_ID_VP8)
      return;
    close();
    const AVCodec* const codec =
        device_ ? cuda_decoder(parameters.codec_id) : avcodec_find_decoder(parameters.codec_id);
    if (codec == nullptr)
      throw error(errc::argument, {"this FFmpeg was built without a decoder of ",
                                   avcodec_get_name(parameters.codec_id), "; install one that has it"});
    context_.reset(avcodec_alloc_context3(codec));
    if (!frame_) frame_.reset(av_frame_alloc());
    if (!packet_) packet_.reset(av_packet_alloc());
    if (!parameters_) parameters_.reset(avcodec_parameters_alloc());
    check_memory(context_.get());
    check_memory(frame_.get());
    check_memory(packet_.get());
    check_memory(parameters_.get());
    if (avcodec_parameters_copy(parameters_.get(), &parameters) < 0 ||
        avcodec_parameters_to_context(context_.get(), &parameters) < 0)
      throw std::bad_alloc();
    context_->thread_count = 1;
    if (device_) {
      context_->hw_device_ctx = av_buffer_ref(device_.get());
      check_memory(context_->hw_device_ctx);
      // What the GPU does not take, as 10 bits of H.264, is decoded on the CPU, if this decoder can.
      context_->get_format = [](AVCodecContext* of, const AVPixelFormat* offered) {
        for (const AVPixelFormat* one = offered; *one != AV_PIX_FMT_NONE; ++one)
          if (*one == AV_PIX_FMT_CUDA) return *one;
        return avcodec_default_get_format(of, offered);
      };
    }
    context_->max_pixels = static_cast<std::int64_t>(max_pixels);
    // The index knows how long frames wait for others; not all files say it.
    context_->has_b_frames = std::max(context_->has_b_frames, static_cast<int>(reordered));
    context_->log_level_offset = 100;  // errors are thrown, not printed
    if (recover)
      context_->flags |= AV_CODEC_FLAG_OUTPUT_CORRUPT;
    else
      context_->err_recognition |= AV_EF_CRCCHECK | AV_EF_BITSTREAM | AV_EF_BUFFER | AV_EF_EXPLODE;
    if (const int failed = avcodec_open2(context_.get(), codec, nullptr); failed < 0) {
      close();
      throw error(errc::format, {"the video file's parameters are none of ",
                                 avcodec_get_name(parameters.codec_id), ": ", ffmpeg_error(failed)});
    }
    recover_ = recover;
    reordered_ = reordered;
    max_pixels_ = max_pixels;
    skips_ = parameters.codec_id == AV_CODEC_ID_H264 || parameters.codec_id == AV_CODEC_ID_MPEG4 ||
             parameters.codec_id == AV_CODEC_ID_MPEG2VIDEO || parameters.codec_id == AV_CODEC_ID_MPEG1VIDEO;
  }
  void close() noexcept { context_.reset(); }

  /// Forgets what was decoded: the next packet is one that decoding can begin at.
  void restart() noexcept { avcodec_flush_buffers(context_.get()); }
  /// Decodes a packet. `frame` comes back with the frame that it is of. What is not wanted is not decoded if
  /// no other frame needs it.
  [[nodiscard]] int send(bytes_view bytes, bool shown, bool key, bool wanted, std::uint32_t frame,
                         std::uint32_t order) {
    if (parameters_->codec_id == AV_CODEC_ID_FFV1 && parameters_->extradata_size != 0 &&
        !is_whole_ffv1(bytes))
      return AVERROR_INVALIDDATA;
    AVPacket& packet = *packet_;
    // Memory that the decoder shares; it would copy that of others.
    if (av_new_packet(&packet, static_cast<int>(bytes.size())) < 0) throw std::bad_alloc();
    std::memcpy(packet.data, bytes.data(), bytes.size());
    packet.pts = shown ? std::int64_t{frame} : hidden;
    packet.dts = order;
    packet.flags = (key ? AV_PKT_FLAG_KEY : 0) | (shown ? 0 : AV_PKT_FLAG_DISCARD);
    context_->skip_frame = wanted || !skips_ ? AVDISCARD_DEFAULT : AVDISCARD_NONREF;
    const int result = avcodec_send_packet(context_.get(), &packet);
    av_packet_unref(&packet);
    return result;
  }
  /// No packet follows: frames that wait are given.
  void finish() noexcept { static_cast<void>(avcodec_send_packet(context_.get(), nullptr)); }
  /// The next frame: 0 if there is one.
  [[nodiscard]] int receive() noexcept {
    converted_ = false;
    return avcodec_receive_frame(context_.get(), frame_.get());
  }
  /// The number of the frame at hand, or a negative one.
  [[nodiscard]] std::int64_t frame() const noexcept { return frame_->pts; }
  [[nodiscard]] bool damaged() const noexcept {
    return (frame_->flags & AV_FRAME_FLAG_CORRUPT) != 0 || frame_->decode_error_flags != 0;
  }
  [[nodiscard]] image_size size() const noexcept {
    return {static_cast<std::uint32_t>(frame_->width), static_cast<std::uint32_t>(frame_->height)};
  }

  /// The frame at hand as RGB, converted once. Rows begin at multiples of 64 bytes.
  [[nodiscard]] pixel_view<std::uint8_t, 3> pixels(buffer& memory) {
    const image_size size = this->size();
    const std::size_t pitch = (std::size_t{size.width} * 3 + 63) / 64 * 64;
    const pixel_view<std::uint8_t, 3> view(reinterpret_cast<const std::uint8_t*>(memory.data()), size, pitch);
    if (converted_) return view;
    memory.resize_for_overwrite(pitch * size.height + 64);
    convert(reinterpret_cast<std::uint8_t*>(memory.data()), static_cast<int>(pitch));
    converted_ = true;
    return {reinterpret_cast<const std::uint8_t*>(memory.data()), size, pitch};
  }
  /// In place of a frame that is missing.
  [[nodiscard]] pixel_view<std::uint8_t, 3> black(buffer& memory, const image_size& size) {
    auto* const pixels = room_for<std::uint8_t>(memory, std::size_t{size.width} * size.height * 3);
    std::memset(pixels, 0, memory.size());
    converted_ = false;
    return {pixels, size};
  }

 private:
  static constexpr std::int64_t hidden = -1;

  [[nodiscard]] static bool same(const AVCodecParameters& a, const AVCodecParameters& b) noexcept {
    return a.codec_id == b.codec_id && a.codec_tag == b.codec_tag && a.width == b.width &&
           a.height == b.height && a.format == b.format && a.profile == b.profile && a.level == b.level &&
           a.color_range == b.color_range && a.color_space == b.color_space &&
           a.extradata_size == b.extradata_size &&
           (a.extradata_size == 0 ||
            std::memcmp(a.extradata, b.extradata, static_cast<std::size_t>(a.extradata_size)) == 0);
  }

  /// By the matrix and the range that the frame names; BT.601 of 16 to 235 where it names none, as ffmpeg
  /// does.
  void convert(std::uint8_t* to, int pitch) {
    if (frame_->format == AV_PIX_FMT_CUDA) download();
    const AVFrame& from = frame_->format == AV_PIX_FMT_CUDA ? *host_ : *frame_;
    auto format = static_cast<AVPixelFormat>(from.format);
    int full = from.color_range == AVCOL_RANGE_JPEG ? 1 : 0;
    for (const auto& [old, now] : {std::pair{AV_PIX_FMT_YUVJ420P, AV_PIX_FMT_YUV420P},
                                   std::pair{AV_PIX_FMT_YUVJ422P, AV_PIX_FMT_YUV422P},
                                   std::pair{AV_PIX_FMT_YUVJ444P, AV_PIX_FMT_YUV444P},
                                   std::pair{AV_PIX_FMT_YUVJ440P, AV_PIX_FMT_YUV440P}})
      if (format == old) format = now, full = 1;
    if (!scaler_ || format != format_ || full != full_ || from.colorspace != space_ || from.width != width_ ||
        from.height != height_) {
      scaler_.reset(sws_getContext(from.width, from.height, format, from.width, from.height, AV_PIX_FMT_RGB24,
                                   SWS_BILINEAR, nullptr, nullptr, nullptr));
      if (!scaler_)
        throw error(errc::format, {"the video file's frames are of a pixel format, number ", from.format,
                                   ", of which FFmpeg makes no RGB"});
      constexpr int one = 1 << 16;
      static_cast<void>(sws_setColorspaceDetails(scaler_.get(), sws_getCoefficients(from.colorspace), full,
                                                 sws_getCoefficients(SWS_CS_DEFAULT), 0, 0, one, one));
      format_ = format, full_ = full, space_ = from.colorspace, width_ = from.width, height_ = from.height;
    }
    std::uint8_t* const planes[4] = {to, nullptr, nullptr, nullptr};
    const int pitches[4] = {pitch, 0, 0, 0};
    if (sws_scale(scaler_.get(), from.data, from.linesize, 0, from.height, planes, pitches) != from.height)
      throw error(errc::format, "FFmpeg could not make RGB of the frame");
  }

  void download() {
    if (!host_) host_.reset(av_frame_alloc());
    check_memory(host_.get());
    av_frame_unref(host_.get());
    if (const int failed = av_hwframe_transfer_data(host_.get(), frame_.get(), 0); failed < 0)
      throw error(errc::argument, {"FFmpeg could not copy a frame from the GPU: ", ffmpeg_error(failed)});
    static_cast<void>(av_frame_copy_props(host_.get(), frame_.get()));
  }

  std::unique_ptr<AVBufferRef, free_reference> device_;  // null: the CPU
  std::unique_ptr<AVCodecContext, free_codec> context_;
  std::unique_ptr<SwsContext, free_scaler> scaler_;
  owned_frame frame_;
  owned_frame host_;  // of the device
  owned_packet packet_;
  owned_parameters parameters_;
  std::uint64_t max_pixels_ = 0;
  unsigned reordered_ = 0;
  bool recover_ = false;
  bool skips_ = false;
  bool converted_ = false;
  AVPixelFormat format_ = AV_PIX_FMT_NONE;
  AVColorSpace space_ = AVCOL_SPC_UNSPECIFIED;
  int full_ = 0, width_ = 0, height_ = 0;
};

}  // namespace detail

}  // namespace penstock::inline v0_1
