// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<jpeglib.h>)
#error "penstock/codec/jpeg.hpp needs libjpeg-turbo: link penstock::jpeg"
#endif

#include <penstock/codec/detail/jpeg_pixels.hpp>

#include <memory>

namespace penstock::inline v0_1 {

/// The per-worker memory of `jpeg`: a decompressor, created on first use, whose memory is kept from image to
/// image, and room for pixels.
class jpeg_scratch : public detail::decoder_scratch<"jpeg"> {
 public:
  [[nodiscard]] detail::jpeg_reader& reader() {
    if (!reader_) reader_ = std::make_unique<detail::jpeg_reader>();
    return *reader_;
  }

 private:
  std::unique_ptr<detail::jpeg_reader> reader_;
};

/// A JPEG image whose header was read, and whose pixels are decoded when their part and place are known.
/// Valid until the worker's next `decode`.
template <pixel_format Format>
using jpeg_image = detail::jpeg_pixels<Format, jpeg_scratch>;

/// JPEG, decoded with libjpeg-turbo to `gray8`, `rgb8` or `rgba8` (alpha 255): `jpeg_as<gray8>`; `jpeg` is
/// `jpeg_as<rgb8>`.
///
/// In: any byte element. Out: a lazy image of the size as shown. `decode` reads the header only. A part is
/// decoded when it is read or drawn: up to its last row, in its columns' blocks, with the margin that
/// interpolated chroma needs, so that it equals the same part of the whole image to the pixel. Rows go
/// straight to a destination of (height, width, channels) if no margin is around them.
/// Files: baseline, progressive and, where the library was built with it, arithmetic-coded ones of 8 bits,
/// with any subsampling that it has; gray and RGB to each other with its weights; CMYK and YCCK as Pillow
/// does.
/// Pixels: those of `djpeg` and Pillow, with the accurate integer DCT and interpolated chroma. torchvision
/// calls it `decode_jpeg`, which does not turn images.
/// Kind: pointwise, keeps all guarantees. Cost per sample: the library's own; no allocation once the scratch
/// has grown. The entropy code before a part is read too, and a progressive file whole, with its coefficients
/// in memory: two bytes for each value that is stored, whatever the part. For one image the library gets at
/// most 8 times `limits.bytes` and 16 MiB more; what needs more is `errc::limit`. A progressive file's header
/// can ask for all of it, so that `limits.bytes` bounds the memory of a worker. Thread-safe, with a scratch
/// per thread.
/// Throws `errc::format` for what is no JPEG file, and for truncated, damaged, lossless and 12-bit ones (an
/// arithmetic-coded or progressive file is truncated already without its last marker);
/// `errc::limit` for sizes beyond `limits`, before anything is allocated for them, and for too many scans.
/// Damage below the part's last row is not seen. Errors that come later name the stage `decode<jpeg>` too.
/// Source: ITU-T T.81; libjpeg-turbo's libjpeg.txt.
///
///     auto images = records | decode<jpeg>(jpeg{.limits = {.width = 4096, .height = 4096}}) | batch(1);
template <pixel_format Format>
struct jpeg_as {
  static_assert(std::is_same_v<Format, gray8> || std::is_same_v<Format, rgb8> ||
                    std::is_same_v<Format, rgba8>,
                "penstock: jpeg_as<Format> decodes to gray8, rgb8 or rgba8");

  /// Of width, height and bytes.
  image_limits limits{};
  /// Turns the image as its EXIF block says.
  bool orient = true;
  /// Decodes what the library can of damaged and truncated files, and counts each of them as a warning in the
  /// run's counters; missing pixels are what the library makes of them, mostly gray. Files are then
  /// decoded from their first row on, in full width.
  bool recover = false;
  /// Lets a `resize` or `random_resized_crop` that comes directly behind the codec, and makes the image
  /// smaller with antialias, have it decoded at 1/2, 1/4 or 1/8 of its size: the smallest that is not smaller
  /// than the result. The rectangle stays the same, to fractions of a pixel; the pixels are near to those of
  /// the whole image, not equal to them. As Pillow's `draft`. Images that are not resized stay as they are.
  bool dct_scaling = false;
  /// The most scans: a progressive file of a few kilobytes can ask for hours of work.
  std::uint32_t scans = 100;

  static constexpr std::string_view codec_name = "jpeg";
  static constexpr std::string_view extensions[] = {"jpg", "jpeg", "jpe", "jfif"};
  static constexpr bool one_at_a_time = true;
  using scratch = jpeg_scratch;

  /// Whether these are the first bytes of a JPEG.
  [[nodiscard]] static bool recognises(bytes_view bytes) noexcept {
    return text_of(bytes).starts_with("\xff\xd8\xff");
  }

  template <byte_element Bytes>
  [[nodiscard]] jpeg_image<Format> decode(const Bytes& in, scratch& s) const {
    const bytes_view file = as_bytes(in);
    detail::jpeg_reader& reader = s.reader();
    reader.recover = recover;
    reader.scans = scans;
    // The coefficients of four channels take eight bytes a pixel.
    constexpr std::uint64_t spare = std::uint64_t{16} << 20;
    reader.memory_limit = std::min(limits.bytes, std::uint64_t{1} << 56) * 8 + spare;
    s.next_image();
    reader.open(file);
    detail::check_image_size(reader.size(), Format::channels, limits, codec_name);
    const J_COLOR_SPACE colours = reader.colours();
    if (colours != JCS_GRAYSCALE && colours != JCS_YCbCr && colours != JCS_RGB && colours != JCS_CMYK &&
        colours != JCS_YCCK)
      throw error(errc::format, "the jpeg file has a number of channels that is no colour: not 1, 3 or 4");
    return {s,
            file,
            reader.size(),
            orient ? reader.turned() : orientation::upright,
            colours == JCS_CMYK || colours == JCS_YCCK,
            dct_scaling};
  }
};

/// JPEG to red, green and blue.
using jpeg = jpeg_as<rgb8>;

}  // namespace penstock::inline v0_1
