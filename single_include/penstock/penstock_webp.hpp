// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Penstock 0.1.0, the component webp. It needs penstock.hpp beside it.
// Made by tools/amalgamate.py from include/penstock; do not edit.
#pragma once

#if !__has_include(<webp/decode.h>)
#error "penstock_webp.hpp needs libwebp: link penstock::webp"
#endif
#if !__has_include(<webp/encode.h>)
#error "penstock_webp.hpp needs libwebp: link penstock::webp"
#endif

#include "penstock.hpp"

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>
#include <webp/decode.h>
#include <webp/encode.h>

// ---- penstock/codec/webp.hpp

namespace penstock::inline v0_1 {

/// The per-worker memory of `webp`: pixels. libwebp's own memory cannot be kept.
class webp_scratch : public detail::damage_count {
 public:
  image_scratch image;

  /// Decodes a part of a canvas, on which the frame is and zeros (transparent, black) are around it.
  template <std::size_t Channels>
  [[nodiscard]] pixel_view<std::uint8_t, Channels> decode(const detail::webp_frame& frame,
                                                          const image_size& canvas, const image_part& part,
                                                          bool recover) {
    const image_part& at = frame.at;
    if (at.size() == canvas) return decode<Channels>(frame.data, canvas, part, recover);
    const std::size_t pitch = part.width * Channels;
    auto* const pixels = room_for<std::uint8_t>(canvas_, pitch * part.height);
    std::memset(pixels, 0, pitch * part.height);
    const std::uint32_t left = std::max(part.x, at.x), right = std::min(part.x + part.width, at.x + at.width);
    const std::uint32_t top = std::max(part.y, at.y),
                        bottom = std::min(part.y + part.height, at.y + at.height);
    if (left < right && top < bottom) {
      const auto shown = decode<Channels>(frame.data, at.size(),
                                          {left - at.x, top - at.y, right - left, bottom - top}, recover);
      for (std::uint32_t y = 0; y < bottom - top; ++y)
        std::memcpy(pixels + (top - part.y + y) * pitch + (left - part.x) * Channels, shown.row(y),
                    (right - left) * Channels);
    }
    return {pixels, part.size()};
  }
  /// Decodes a part of the stored image to RGB or RGBA. Returns a view of it, valid until the next call.
  /// With `recover` it decodes the whole image, so that what is left of it does not depend on the part.
  template <std::size_t Channels>
  [[nodiscard]] pixel_view<std::uint8_t, Channels> decode(bytes_view encoded, const image_size& stored,
                                                          const image_part& part, bool recover) {
    image_part wider = recover ? whole_of(stored) : with_margin(part, stored);
    if constexpr (Channels == 4) {
      // libwebp 1.2 gets rows of filtered alpha wrong if those above are cropped.
      wider.height += wider.y;
      wider.y = 0;
    }
    const std::size_t pitch = wider.width * Channels;
    auto* const pixels = room_for<std::uint8_t>(decoded_, pitch * wider.height);
    WebPDecoderConfig config = into(pixels, pitch, pitch * wider.height, Channels);
    if (wider.size() != stored) {
      config.options.use_cropping = 1;
      config.options.crop_left = static_cast<int>(wider.x);
      config.options.crop_top = static_cast<int>(wider.y);
      config.options.crop_width = static_cast<int>(wider.width);
      config.options.crop_height = static_cast<int>(wider.height);
    }
    const VP8StatusCode fault =
        WebPDecode(reinterpret_cast<const std::uint8_t*>(encoded.data()), encoded.size(), &config);
    const pixel_view<std::uint8_t, Channels> view(pixels, wider.size(), pitch);
    if (fault == VP8_STATUS_OK)
      return view.part({part.x - wider.x, part.y - wider.y, part.width, part.height});
    if (lacked_memory(fault)) throw std::bad_alloc();
    if (!recover) refuse(fault);
    return decode_what_is_left<Channels>(encoded, stored, fault).part(part);
  }

  /// Whether libwebp got no memory. An abort by its user, of whom it has none here, is what it calls a lack
  /// of memory for the rows of interpolated chroma. Source: libwebp 1.2.4, io_dec.c, CustomSetup.
  static bool lacked_memory(VP8StatusCode fault) noexcept {
    return fault == VP8_STATUS_OUT_OF_MEMORY || fault == VP8_STATUS_USER_ABORT;
  }
  /// Throws for an error of libwebp.
  [[noreturn, gnu::cold]] static void refuse(VP8StatusCode fault) {
    switch (fault) {
      case VP8_STATUS_OUT_OF_MEMORY:
      case VP8_STATUS_USER_ABORT:
        throw std::bad_alloc();
      case VP8_STATUS_NOT_ENOUGH_DATA:
      case VP8_STATUS_SUSPENDED:
        throw error(errc::format, "the webp image is truncated: it ends before its last pixel");
      case VP8_STATUS_UNSUPPORTED_FEATURE:
        throw error(errc::format, "the webp image uses a feature that libwebp does not have");
      default:
        throw error(errc::format, "the webp image is damaged");
    }
  }

 private:
  struct free_decoder {
    void operator()(WebPIDecoder* decoder) const noexcept { WebPIDelete(decoder); }
  };

  static WebPDecoderConfig into(std::uint8_t* pixels, std::size_t pitch, std::size_t bytes,
                                std::size_t channels) {
    WebPDecoderConfig config;
    if (WebPInitDecoderConfig(&config) == 0)
      throw error(errc::argument, "webp: the program runs with another libwebp than it was built with");
    config.output.colorspace = channels == 4 ? MODE_RGBA : MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = pixels;
    config.output.u.RGBA.stride = static_cast<int>(pitch);
    config.output.u.RGBA.size = bytes;
    return config;
  }

  /// The part that must be decoded for its pixels to be those of the whole image: lossy images have a chroma
  /// for two pixels in each direction, and the colour of a pixel takes those of its neighbours into account.
  [[nodiscard]] static image_part with_margin(const image_part& part, const image_size& stored) noexcept {
    const auto begin = [](std::uint32_t at) { return (at < 2 ? 0 : at - 2) & ~1u; };
    const auto end = [](std::uint32_t at, std::uint32_t limit) {
      return std::min(limit, ((at + 1) & ~1u) + 2);
    };
    image_part wider;
    wider.x = begin(part.x);
    wider.y = begin(part.y);
    wider.width = end(part.x + part.width, stored.width) - wider.x;
    wider.height = end(part.y + part.height, stored.height) - wider.y;
    return wider;
  }

  /// All of the image, as far as it can be decoded; zeros below. Throws for `why` if there is no row.
  template <std::size_t Channels>
  [[nodiscard, gnu::cold]] pixel_view<std::uint8_t, Channels> decode_what_is_left(bytes_view encoded,
                                                                                  const image_size& stored,
                                                                                  VP8StatusCode why) {
    const std::size_t pitch = stored.width * Channels, bytes = pitch * stored.height;
    auto* const pixels = room_for<std::uint8_t>(decoded_, bytes);
    std::memset(pixels, 0, bytes);
    WebPDecoderConfig config = into(pixels, pitch, bytes, Channels);
    const std::unique_ptr<WebPIDecoder, free_decoder> decoder(WebPINewDecoder(&config.output));
    if (!decoder) throw std::bad_alloc();
    // Here an abort by the user can be damaged alpha, too.
    const VP8StatusCode fault =
        WebPIUpdate(decoder.get(), reinterpret_cast<const std::uint8_t*>(encoded.data()), encoded.size());
    if (fault == VP8_STATUS_OUT_OF_MEMORY) throw std::bad_alloc();
    int rows = 0;
    if (WebPIDecGetRGB(decoder.get(), &rows, nullptr, nullptr, nullptr) == nullptr || rows <= 0) refuse(why);
    damage();
    return {pixels, stored};
  }

  buffer decoded_, canvas_;
};

/// A WebP that is not decoded yet: a `lazy_image` over bytes that are valid as long as the codec's input.
template <pixel_format Format>
class webp_image : public image_expression<webp_image<Format>, std::uint8_t, Format::channels> {
  using base = image_expression<webp_image, std::uint8_t, Format::channels>;

 public:
  using typename base::view_type;

  /// `frame`: the chunks to decode, and their place in the image, whose size is `stored`.
  webp_image(webp_scratch& scratch, const detail::webp_frame& frame, const image_size& stored,
             orientation turn, bool recover) noexcept
      : scratch_(&scratch), frame_(frame), stored_(stored), turn_(turn), recover_(recover) {}

  /// As shown: after the orientation.
  [[nodiscard]] image_size size() const noexcept { return oriented(stored_, turn_); }
  [[nodiscard]] image_scratch& memory() const noexcept { return scratch_->image; }

  /// Decodes the part and a margin of two pixels.
  [[nodiscard]] view_type read(const image_part& part) const {
    if (part.width == 0 || part.height == 0) return {};
    const view_type view = decode(stored_part(part, stored_, turn_));
    if (turn_ == orientation::upright) return view;
    const std::size_t values = std::size_t{part.width} * part.height * Format::channels;
    auto* const turned = room_for<std::uint8_t>(scratch_->image.work, values);
    const extents shape(std::size_t{part.height}, std::size_t{part.width}, Format::channels);
    orient_pixels(view, turn_, destination<std::uint8_t>(turned, shape));
    return {turned, part.size()};
  }
  void draw(const image_part& part, const destination<std::uint8_t>& into) const {
    if (part.width == 0 || part.height == 0) return;
    if (turn_ == orientation::upright)
      copy_pixels(decode(part), into);
    else
      orient_pixels(decode(stored_part(part, stored_, turn_)), turn_, into);
  }

 private:
  [[nodiscard]] view_type decode(const image_part& stored) const {
    constexpr std::size_t decoded = Format::channels == 1 ? 3 : Format::channels;
    const auto colours = detail::naming_codec(
        "webp", [&] { return scratch_->template decode<decoded>(frame_, stored_, stored, recover_); });
    if constexpr (Format::channels != 1) {
      return colours;
    } else {
      auto* const gray =
          room_for<std::uint8_t>(scratch_->image.pixels, std::size_t{stored.width} * stored.height);
      for (std::size_t y = 0; y < stored.height; ++y)
        detail::luma_row(colours.row(y), 3, gray + y * stored.width, stored.width);
      return {gray, stored.size()};
    }
  }

  webp_scratch* scratch_;
  detail::webp_frame frame_;
  image_size stored_;
  orientation turn_;
  bool recover_;
};

/// WebP, lossy and lossless, decoded with libwebp to pixels of `Format`: gray8, rgb8 or rgba8.
///
/// In: any byte element. Out: a `lazy_image` of the size at which the image is shown: the orientation of its
/// EXIF chunk, or otherwise of its XMP chunk, is applied, unless `orient` is false. Nothing is decoded until
/// the image is read, and then only the part that is needed and two pixels around it, with which the part
/// equals that of the whole image; of lossless images and with alpha, the rows above it too. Alpha is dropped
/// for rgb8 and gray8, and the colours under it stay as they are, as with Pillow's `convert("RGB")`; gray is
/// Pillow's luma of the colours. Profiles are ignored.
/// Kind: pointwise, keeps all guarantees. Cost: libwebp's, which allocates memory for each image, with
/// malloc: it has no way to be given any. Penstock itself allocates nothing once the scratch has grown.
/// Thread-safe, with a scratch per thread.
/// Throws `errc::limit` for sizes beyond `limits`, before anything is allocated; `errc::format` for what is
/// no WebP, animated (unless `first_frame`), damaged or truncated. With `recover`, images are decoded whole,
/// also for a part; rows that are missing become zero (black, transparent); each such image that is read is a
/// warning in the run's counters; and one of which no row can be decoded is still an error.
///
///     auto pictures = directory("pictures") | decode<webp>;
///     auto gray = directory("pictures") | decode<webp_as<gray8>>(webp_as<gray8>{.orient = false});
template <pixel_format Format>
struct webp_as {
  static_assert(std::same_as<typename Format::value_type, std::uint8_t>,
                "penstock: webp images have 8 bits a channel; write webp_as<gray8>, <rgb8> or <rgba8>");

  image_limits limits{};  ///< of the stored image, and of the bytes of its pixels in `Format`
  bool orient = true;     ///< whether the orientation is applied
  bool recover = false;   ///< whether a damaged image becomes what is left of it
  /// Whether an animation becomes its first frame, on a canvas that is transparent (black) around it;
  /// otherwise it is an error.
  bool first_frame = false;

  static constexpr std::string_view codec_name = "webp";
  static constexpr std::string_view extensions[] = {"webp"};
  static constexpr bool one_at_a_time = true;
  using scratch = webp_scratch;

  /// Whether these are the first bytes of a WebP.
  [[nodiscard]] static bool recognises(bytes_view bytes) noexcept { return detail::begins_as_webp(bytes); }

  template <byte_element Bytes>
  [[nodiscard]] webp_image<Format> decode(const Bytes& in, scratch& s) const {
    const bytes_view bytes = as_bytes(in);
    s.next_image();
    if (bytes.empty()) throw error(errc::format, "the webp image is empty: it has no bytes");
    if (!recognises(bytes))
      throw error(errc::format, "this is no webp image: it does not begin as one").at_offset(0);
    WebPBitstreamFeatures features;
    const VP8StatusCode fault =
        WebPGetFeatures(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(), &features);
    if (fault != VP8_STATUS_OK) s.refuse(fault);
    const image_size size{static_cast<std::uint32_t>(features.width),
                          static_cast<std::uint32_t>(features.height)};
    detail::check_image_size(size, Format::channels, limits, codec_name);
    detail::webp_frame frame{bytes, whole_of(size)};
    if (features.has_animation != 0) {
      if (!first_frame)
        throw error(errc::format,
                    "the webp image is animated; write {.first_frame = true} for its first frame");
      frame = detail::first_webp_frame(bytes, size, recover);
      WebPBitstreamFeatures of_frame;
      const VP8StatusCode bad = WebPGetFeatures(reinterpret_cast<const std::uint8_t*>(frame.data.data()),
                                                frame.data.size(), &of_frame);
      if (bad != VP8_STATUS_OK) s.refuse(bad);
      if (static_cast<std::uint32_t>(of_frame.width) != frame.at.width ||
          static_cast<std::uint32_t>(of_frame.height) != frame.at.height)
        throw error(errc::format, "the webp image is damaged: its first frame has another size than it says");
    }
    return {s, frame, size, orient ? detail::webp_orientation(bytes) : orientation::upright, recover};
  }
};

/// WebP to RGB, 8 bits each.
using webp = webp_as<rgb8>;

}  // namespace penstock::inline v0_1

// ---- penstock/codec/webp_encoder.hpp

namespace penstock::inline v0_1 {

/// How `webp_encoder` compresses.
struct webp_options {
  float quality = 75;     ///< 0 to 100; of lossless images, the effort
  bool lossless = false;  ///< keeps every pixel, also the colours of transparent ones
  int method = 4;         ///< 0 (fast) to 6 (small)
};

/// Writes WebPs of 8 bits: gray (as colours), RGB and RGBA, by the number of channels. For tools and tests.
///
/// One image after another. libwebp allocates for each; the file's memory is kept. Throws `errc::argument`
/// for images without pixels or beyond 16,383 in a direction, and for options outside their range.
///
///     const std::uint8_t black[2 * 2 * 3] = {};
///     webp_encoder encoder;
///     bytes_view file = encoder.encode(pixel_view<std::uint8_t, 3>(black, {2, 2}), {.lossless = true});
class webp_encoder {
 public:
  /// The bytes of the file; valid until the next call.
  template <std::size_t Channels>
    requires(Channels == 1 || Channels == 3 || Channels == 4)
  [[nodiscard]] bytes_view encode(const pixel_view<std::uint8_t, Channels>& pixels,
                                  const webp_options& options = {}) {
    if constexpr (Channels == 1) {
      auto* const colours = room_for<std::uint8_t>(colours_, pixels.width() * pixels.height() * 3);
      for (std::size_t y = 0, i = 0; y < pixels.height(); ++y)
        for (std::size_t x = 0; x < pixels.width(); ++x)
          for (int c = 0; c < 3; ++c) colours[i++] = pixels.row(y)[x];
      return write(pixels.size(), colours, pixels.width() * 3, false, options);
    } else {
      return write(pixels.size(), pixels.data(), pixels.pitch(), Channels == 4, options);
    }
  }

 private:
  struct picture : WebPPicture {
    picture() {
      if (WebPPictureInit(this) == 0)
        throw error(errc::argument,
                    "webp_encoder: the program runs with another libwebp than it was built with");
    }
    picture(const picture&) = delete;
    picture& operator=(const picture&) = delete;
    ~picture() { WebPPictureFree(this); }
  };

  static int append(const std::uint8_t* bytes, std::size_t size, const WebPPicture* input) noexcept {
    auto& encoder = *static_cast<webp_encoder*>(input->custom_ptr);
    try {
      encoder.file_.append({reinterpret_cast<const std::byte*>(bytes), size});
    } catch (const std::bad_alloc&) {
      encoder.no_memory_ = true;
      return 0;
    }
    return 1;
  }

  bytes_view write(const image_size& size, const std::uint8_t* pixels, std::size_t pitch, bool alpha,
                   const webp_options& options) {
    if (size.width == 0 || size.height == 0 || size.width > WEBP_MAX_DIMENSION ||
        size.height > WEBP_MAX_DIMENSION)
      throw error(errc::argument, {"webp_encoder: an image of ", size.width, " x ", size.height,
                                   "; a webp image has 1 to 16383 pixels in each direction"});
    if (!(options.quality >= 0 && options.quality <= 100))
      throw error(errc::argument, "webp_encoder: the quality is not in its range; give 0 to 100");
    if (options.method < 0 || options.method > 6)
      throw error(errc::argument, {"webp_encoder: there is no method ", options.method, "; give 0 to 6"});
    WebPConfig config;
    if (WebPConfigInit(&config) == 0)
      throw error(errc::argument,
                  "webp_encoder: the program runs with another libwebp than it was built with");
    config.quality = options.quality;
    config.method = options.method;
    config.lossless = options.lossless ? 1 : 0;
    config.exact = config.lossless;
    picture image;
    image.use_argb = config.lossless;
    image.width = static_cast<int>(size.width);
    image.height = static_cast<int>(size.height);
    image.writer = append;
    image.custom_ptr = this;
    file_.clear();
    no_memory_ = false;
    const int taken = alpha ? WebPPictureImportRGBA(&image, pixels, static_cast<int>(pitch))
                            : WebPPictureImportRGB(&image, pixels, static_cast<int>(pitch));
    if (taken != 0 && WebPEncode(&config, &image) != 0) return file_.view();
    if (taken == 0 || no_memory_ || image.error_code == VP8_ENC_ERROR_OUT_OF_MEMORY ||
        image.error_code == VP8_ENC_ERROR_BITSTREAM_OUT_OF_MEMORY)
      throw std::bad_alloc();
    throw error(errc::argument, {"webp_encoder: libwebp refuses the image, with its error ",
                                 static_cast<int>(image.error_code)});
  }

  buffer colours_;
  buffer file_;
  bool no_memory_ = false;
};

}  // namespace penstock::inline v0_1
