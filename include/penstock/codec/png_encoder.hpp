// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<spng.h>)
#error "penstock/codec/png_encoder.hpp needs libspng: link penstock::png"
#endif

#include <penstock/codec/detail/spng_memory.hpp>
#include <penstock/core/error.hpp>
#include <penstock/image/orientation.hpp>

#include <spng.h>

namespace penstock::inline v0_1 {

/// How `png_encoder` compresses.
struct png_options {
  int level = 6;                             ///< zlib's, from 0 (not at all) to 9 (slowest)
  orientation shown = orientation::upright;  ///< how the image is to be turned; written as an eXIf chunk
};

/// Writes PNGs of 8 and 16 bits: gray, RGB and RGBA, by the number of channels. For tools and tests.
///
/// One image after another; the memory is kept, so nothing is allocated once it has grown. Throws
/// `errc::argument` for images without pixels and unknown levels.
///
///     const std::uint8_t black[2 * 2 * 3] = {};
///     png_encoder encoder;
///     bytes_view file = encoder.encode(pixel_view<std::uint8_t, 3>(black, {2, 2}));
class png_encoder {
 public:
  /// The bytes of the file; valid until the next call.
  template <class T, std::size_t Channels>
    requires((std::same_as<T, std::uint8_t> || std::same_as<T, std::uint16_t>) &&
             (Channels == 1 || Channels == 3 || Channels == 4))
  [[nodiscard]] bytes_view encode(const pixel_view<T, Channels>& pixels, const png_options& options = {}) {
    constexpr int colour = Channels == 1   ? SPNG_COLOR_TYPE_GRAYSCALE
                           : Channels == 3 ? SPNG_COLOR_TYPE_TRUECOLOR
                                           : SPNG_COLOR_TYPE_TRUECOLOR_ALPHA;
    return write(pixels.size(), reinterpret_cast<const std::byte*>(pixels.data()), pixels.pitch() * sizeof(T),
                 pixels.row_values() * sizeof(T), sizeof(T) * 8, colour, options);
  }

 private:
  static int append(spng_ctx*, void* self, void* bytes, std::size_t size) noexcept {
    auto& encoder = *static_cast<png_encoder*>(self);
    try {
      encoder.file_.append({static_cast<const std::byte*>(bytes), size});
    } catch (const std::bad_alloc&) {
      encoder.no_memory_ = true;
      return SPNG_IO_ERROR;
    }
    return 0;
  }

  bytes_view write(const image_size& size, const std::byte* pixels, std::size_t pitch, std::size_t row_bytes,
                   std::size_t depth, int colour, const png_options& options) {
    if (size.width == 0 || size.height == 0)
      throw error(errc::argument, {"png_encoder: an image of ", size.width, " x ", size.height,
                                   " has no pixels; a png image has at least one"});
    if (options.level < 0 || options.level > 9)
      throw error(errc::argument, {"png_encoder: there is no level ", options.level, "; give 0 to 9"});
    const detail::allocation_pool::scope kept(memory_);
    memory_.forget_failure();
    no_memory_ = false;
    file_.clear();
    const int fault = run(size, pixels, pitch, row_bytes, depth, colour, options);
    if (fault == SPNG_EOI) return file_.view();
    if (no_memory_ || memory_.failed() || fault == SPNG_EMEM) throw std::bad_alloc();
    throw error(errc::argument, {"png_encoder: libspng refuses the image: ", spng_strerror(fault)});
  }
  int run(const image_size& size, const std::byte* pixels, std::size_t pitch, std::size_t row_bytes,
          std::size_t depth, int colour, const png_options& options) {
    const detail::spng_context context = detail::new_spng(SPNG_CTX_ENCODER);
    spng_ctx* const c = context.get();
    if (const int fault = spng_set_png_stream(c, append, this); fault != 0) return fault;
    spng_ihdr header{};
    header.width = size.width;
    header.height = size.height;
    header.bit_depth = static_cast<std::uint8_t>(depth);
    header.color_type = static_cast<std::uint8_t>(colour);
    if (const int fault = spng_set_ihdr(c, &header); fault != 0) return fault;
    if (const int fault = spng_set_option(c, SPNG_IMG_COMPRESSION_LEVEL, options.level); fault != 0)
      return fault;
    // A TIFF header and a directory of one entry: the orientation.
    char exif[26] = {'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0};
    exif[19] = static_cast<char>(options.shown);
    spng_exif turned{sizeof(exif), exif};
    if (options.shown != orientation::upright)
      if (const int fault = spng_set_exif(c, &turned); fault != 0) return fault;
    const int flags = SPNG_ENCODE_PROGRESSIVE | SPNG_ENCODE_FINALIZE;
    int fault = spng_encode_image(c, nullptr, 0, SPNG_FMT_PNG, flags);
    for (std::uint32_t y = 0; y < size.height && fault == 0; ++y)
      fault = spng_encode_row(c, pixels + y * pitch, row_bytes);
    return fault;
  }

  detail::allocation_pool memory_;
  buffer file_;
  bool no_memory_ = false;
};

}  // namespace penstock::inline v0_1
