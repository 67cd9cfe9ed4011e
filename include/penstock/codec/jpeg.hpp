// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<jpeglib.h>)
#error "penstock/codec/jpeg.hpp needs libjpeg-turbo: link penstock::jpeg"
#endif

#include <penstock/codec/detail/jpeg_reader.hpp>
#include <penstock/codec/detail/stored_image.hpp>

#include <memory>

namespace penstock::inline v0_1 {

namespace detail {

/// Four channels as the file has them, which is inverted, to a pixel. Source: Pillow 9.4, JpegImagePlugin.py
/// ("assume adobe conventions"), Convert.c: cmyk2rgb and rgb2l.
template <std::size_t Channels>
void convert_cmyk(const std::uint8_t* from, std::size_t pixels, std::uint8_t* to) noexcept {
  for (std::size_t i = 0; i < pixels; ++i, from += 4, to += Channels) {
    std::array<std::uint8_t, 3> rgb{};
    for (std::size_t c = 0; c < 3; ++c) {
      const std::uint32_t product = (255u - from[c]) * from[3] + 128;
      rgb[c] = static_cast<std::uint8_t>(from[3] - (((product >> 8) + product) >> 8));
    }
    put_pixel<Channels>(rgb[0], rgb[1], rgb[2], std::uint8_t{255}, to);
  }
}

struct jpeg_job : image_job {
  bool four = false;    ///< the file has four channels
  bool scales = false;  ///< it may be decoded smaller
  unsigned halvings = 0;

  /// By the DCT: 8 x 8 coefficients are decoded as 4 x 4, 2 x 2 or 1 pixel.
  [[nodiscard]] unsigned max_halvings() const noexcept { return scales ? 3 - halvings : 0; }
  [[nodiscard]] jpeg_job halved(unsigned times, real_part& where) const noexcept {
    jpeg_job smaller = *this;
    const std::uint32_t side = 1u << times;
    const auto up = [&](std::uint32_t n) { return n / side + (n % side != 0 ? 1 : 0); };
    smaller.halvings += times;
    smaller.stored = {up(stored.width), up(stored.height)};
    // The blocks begin at the upper left corner of the stored image, wherever that is shown.
    const orientation_steps o = steps_of(turn);
    const bool from_right = o.transpose ? o.flip_y : o.flip_x;
    const bool from_bottom = o.transpose ? o.flip_x : o.flip_y;
    const image_size shown = oriented(stored, turn), now = oriented(smaller.stored, turn);
    const double scale = 1.0 / side;
    if (from_right) where.x += static_cast<double>(std::uint64_t{now.width} * side - shown.width);
    if (from_bottom) where.y += static_cast<double>(std::uint64_t{now.height} * side - shown.height);
    where = {where.x * scale, where.y * scale, where.width * scale, where.height * scale};
    return smaller;
  }
};

}  // namespace detail

/// The per-worker memory of `jpeg`: a decompressor, created on first use, whose memory is kept from image to
/// image, and room for pixels.
class jpeg_scratch : public detail::decoder_scratch<"jpeg", detail::jpeg_job> {
 public:
  [[nodiscard]] detail::jpeg_reader& reader() {
    if (!reader_) reader_ = std::make_unique<detail::jpeg_reader>();
    return *reader_;
  }

  /// Decodes a part of the stored image, with a margin beside it.
  template <pixel_format Format>
  [[nodiscard]] pixel_view<std::uint8_t, Format::channels> decode(const job_type& what,
                                                                  const image_part& part) {
    constexpr std::size_t channels = Format::channels;
    const std::size_t width = start<channels>(what, part), first = part.x - reader_->first();
    std::uint8_t* const pixels = room_for<std::uint8_t>(image.pixels, width * part.height * channels);
    rows<channels>(
        what, part, [&](std::size_t y, unsigned i) { return pixels + (y + i) * width * channels; },
        [](std::size_t, unsigned) {});
    return {pixels + first * channels, part.size(), width * channels};
  }

  /// Straight into the destination if its pixels lie side by side and no margin is decoded; otherwise a few
  /// rows at a time.
  template <pixel_format Format>
  [[nodiscard]] bool draw(const job_type& what, const image_part& part,
                          const destination<std::uint8_t>& into) {
    constexpr std::size_t channels = Format::channels;
    const std::size_t width = start<channels>(what, part), first = part.x - reader_->first();
    const element_strides strides = into.strides();
    const bool straight = detail::interleaved<channels>(into) && width == part.width;
    std::uint8_t* const some =
        straight ? nullptr : room_for<std::uint8_t>(image.work, width * channels * rows_per_read);
    const auto destination_row = [&](std::size_t y) {
      return into.data() + static_cast<std::int64_t>(y) * strides[0];
    };
    rows<channels>(
        what, part,
        [&](std::size_t y, unsigned i) {
          return straight ? destination_row(y + i) : some + i * width * channels;
        },
        [&](std::size_t y, unsigned n) {
          if (straight) return;
          copy_pixels(
              pixel_view<std::uint8_t, channels>(some + first * channels, {part.width, n}, width * channels),
              destination<std::uint8_t>(destination_row(y),
                                        extents(std::size_t{n}, std::size_t{part.width}, channels), strides));
        });
    return true;
  }

 private:
  static constexpr unsigned rows_per_read = detail::jpeg_reader::rows_per_read;

  /// Begins to decode the stored part. Returns the width of what is decoded.
  template <std::size_t Channels>
  std::size_t start(const job_type& what, const image_part& part) {
    detail::jpeg_reader& reader = this->reader();
    if (!reader.at_header_of(what.file)) reader.open(what.file);
    reader.start(part,
                 what.four       ? JCS_CMYK
                 : Channels == 1 ? JCS_GRAYSCALE
                 : Channels == 3 ? JCS_RGB
                                 : JCS_EXT_RGBA,
                 what.halvings);
    return reader.width();
  }
  /// Decodes the rows of the part: `place(y, i)` says where row y + i of it goes, in the width that is
  /// decoded, and `done(y, n)` follows n rows from y on.
  template <std::size_t Channels, class Place, class Done>
  void rows(const job_type& what, const image_part& part, Place&& place, Done&& done) {
    detail::jpeg_reader& reader = *reader_;
    const std::size_t width = reader.width();
    std::uint8_t* const four =
        what.four ? room_for<std::uint8_t>(image.dense, width * 4 * rows_per_read) : nullptr;
    std::array<std::uint8_t*, rows_per_read> list{};
    if (const std::uint32_t before = reader.before(); before != 0) {
      list.fill(room_for<std::uint8_t>(image.tables, width * (what.four ? 4 : Channels)));
      for (std::uint32_t left = before; left != 0;)
        left -= reader.read(std::span<std::uint8_t* const>(list).first(std::min(left, rows_per_read)));
    }
    for (std::uint32_t y = 0; y < part.height;) {
      const unsigned n = std::min(part.height - y, rows_per_read);
      for (unsigned i = 0; i < n; ++i) list[i] = what.four ? four + i * width * 4 : place(y, i);
      const unsigned got = reader.read(std::span<std::uint8_t* const>(list).first(n));
      for (unsigned i = 0; what.four && i < got; ++i)
        detail::convert_cmyk<Channels>(list[i], width, place(y, i));
      done(y, got);
      y += got;
    }
    if (reader.damages != 0) damage();
    reader.close();
  }

  std::unique_ptr<detail::jpeg_reader> reader_;
};

/// A JPEG image whose header was read, and whose pixels are decoded when their part and place are known.
/// Valid until the worker's next `decode`.
template <pixel_format Format>
using jpeg_image = detail::stored_image<jpeg_scratch, Format>;

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
    s.next();
    reader.open(file);
    detail::check_image_size(reader.size(), Format::channels, limits, codec_name);
    const J_COLOR_SPACE colours = reader.colours();
    if (colours != JCS_GRAYSCALE && colours != JCS_YCbCr && colours != JCS_RGB && colours != JCS_CMYK &&
        colours != JCS_YCCK)
      throw error(errc::format, "the jpeg file has a number of channels that is no colour: not 1, 3 or 4");
    const orientation turn = orient ? reader.turned() : orientation::upright;
    const bool four = colours == JCS_CMYK || colours == JCS_YCCK;
    return {s, {{file, reader.size(), turn, recover}, four, dct_scaling}};
  }
};

/// JPEG to red, green and blue.
using jpeg = jpeg_as<rgb8>;

}  // namespace penstock::inline v0_1
