// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<webp/encode.h>)
#error "penstock/codec/webp_encoder.hpp needs libwebp: link penstock::webp"
#endif

#include <penstock/core/error.hpp>
#include <penstock/image/lazy_image.hpp>

#include <webp/encode.h>

#include <new>

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
  struct picture : WebPPicture, detail::unmovable {
    picture() {
      if (WebPPictureInit(this) == 0)
        throw error(errc::argument,
                    "webp_encoder: the program runs with another libwebp than it was built with");
    }
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
