// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<tiffio.h>)
#error "penstock/codec/tiff.hpp needs libtiff: link penstock::tiff"
#endif

#include <penstock/codec/detail/stored_image.hpp>
#include <penstock/codec/detail/tiff_reader.hpp>

namespace penstock::inline v0_1 {

/// The per-worker memory of `tiff`: samples and pixels. libtiff's own memory cannot be kept.
class tiff_scratch : public detail::decoder_scratch<"tiff"> {
 public:
  /// Decodes a part of the stored image.
  template <pixel_format Format>
  [[nodiscard]] auto decode(const job_type& what, const image_part& part) {
    using value = typename Format::value_type;
    detail::tiff_reader reader(what.file);
    const std::size_t count = std::size_t{part.width} * part.height;
    value* const pixels = room_for<value>(image.pixels, count * Format::channels);
    if (!reader.plain())
      converted<Format>(reader, part, pixels, what.recover);
    else if (reader.bits() == 8)
      plain<Format, std::uint8_t>(reader, part, pixels, what.recover);
    else
      plain<Format, std::uint16_t>(reader, part, pixels, what.recover);
    return pixel_view<value, Format::channels>(pixels, part.size());
  }

 private:
  /// 16 bits become 8 without the lower 8, 8 become 16 times 257.
  template <class To, class From>
  [[nodiscard]] static To in_depth(From sample) noexcept {
    if constexpr (sizeof(To) == sizeof(From))
      return sample;
    else if constexpr (sizeof(To) < sizeof(From))
      return static_cast<To>(sample >> 8);
    else
      return static_cast<To>(sample * 257u);
  }
  template <pixel_format Format, class Sample>
  void plain(detail::tiff_reader& reader, const image_part& part, typename Format::value_type* to,
             bool recover) {
    using value = typename Format::value_type;
    constexpr std::uint32_t largest = sizeof(Sample) == 1 ? 255 : 65'535;
    const std::size_t count = std::size_t{part.width} * part.height;
    const std::size_t colours = reader.colours(), each = colours + (reader.alpha() ? 1 : 0);
    Sample* const samples = room_for<Sample>(samples_, count * each);
    if (recover) std::memset(samples, 0, count * each * sizeof(Sample));
    if (!reader.read(part, samples, block_)) spoilt(reader, recover);
    const Sample* pixel = samples;
    for (std::size_t i = 0; i < count; ++i, pixel += each, to += Format::channels) {
      std::uint32_t colour[3] = {pixel[0], colours == 3 ? pixel[1] : pixel[0],
                                 colours == 3 ? pixel[2] : pixel[0]};
      const std::uint32_t alpha = reader.alpha() ? pixel[colours] : largest;
      for (std::uint32_t& one : colour) {
        if (reader.inverted()) one = largest - one;
        if (reader.multiplied()) one = alpha == 0 ? 0 : std::min(one * largest / alpha, largest);
      }
      std::uint32_t made[Format::channels];
      detail::put_pixel<Format::channels>(colour[0], colour[1], colour[2], alpha, made);
      for (std::size_t c = 0; c < Format::channels; ++c)
        to[c] = in_depth<value>(static_cast<Sample>(made[c]));
    }
  }
  /// Everything else, as libtiff converts it: palettes, few bits, CMYK, YCbCr, Lab, ...
  template <pixel_format Format>
  void converted(detail::tiff_reader& reader, const image_part& part, typename Format::value_type* to,
                 bool recover) {
    using value = typename Format::value_type;
    const image_size size = reader.size();
    const std::size_t count = std::size_t{size.width} * size.height;
    auto* const all = room_for<std::uint32_t>(samples_, count);
    std::memset(all, 0, count * sizeof(std::uint32_t));
    if (!reader.read_rgba(all)) spoilt(reader, recover);
    for (std::uint32_t y = part.y; y < part.y + part.height; ++y)
      for (std::uint32_t x = part.x; x < part.x + part.width; ++x, to += Format::channels) {
        const std::uint32_t pixel = all[std::size_t{y} * size.width + x];
        const auto byte = [&](unsigned i) { return static_cast<std::uint8_t>(pixel >> (8 * i)); };
        std::uint8_t made[Format::channels];
        detail::put_pixel<Format::channels>(byte(0), byte(1), byte(2), byte(3), made);
        for (unsigned c = 0; c < Format::channels; ++c) to[c] = in_depth<value>(made[c]);
      }
  }
  void spoilt(const detail::tiff_reader& reader, bool recover) {
    if (!recover) reader.refuse();
    damage();
  }

  buffer samples_, block_;
};

/// A TIFF that is not decoded yet: a `lazy_image` over bytes that are valid as long as the codec's input.
template <pixel_format Format>
using tiff_image = detail::stored_image<tiff_scratch, Format>;

/// TIFF, decoded with libtiff to pixels of `Format`: gray8, rgb8, rgba8, gray16, rgb16 or rgba16.
///
/// In: any byte element. Out: a `lazy_image` of the size at which the image is shown: the orientation of its
/// tag is applied, unless `orient` is false. Of a file with several pages, the first. Nothing is decoded
/// until the image is read, and then the strips or tiles that are needed. Gray and RGB of 8 and 16 bits, with
/// alpha and without, in any of the compressions that libtiff was built with, keep their values: 16 bits
/// become 8 by dropping the lower 8, 8 bits become 16 times 257; colours that are multiplied by alpha are
/// divided by it, as in Pillow. Everything else (palettes, fewer bits, CMYK, YCbCr, Lab) is what libtiff's
/// RGBA interface makes of the whole image, in 8 bits. Colours become gray by Pillow's luma. Alpha is dropped
/// for formats without it.
/// Kind: pointwise, keeps all guarantees. Cost: libtiff's, which allocates memory for each image. Penstock
/// itself allocates nothing once the scratch has grown. Thread-safe, with a scratch per thread.
/// Throws `errc::limit` for sizes beyond `limits`, before pixels are allocated; `errc::format` for what is no
/// TIFF, of samples that are no unsigned integers, damaged or truncated. With `recover`, strips and tiles
/// that are missing become zero, and each such image that is read is a warning in the run's counters.
///
///     auto scans = directory("scans") | decode<penstock::tiff>;  // libtiff has a struct of that name
///     auto depths = directory("depths") | decode<tiff_as<gray16>>;
template <pixel_format Format>
struct tiff_as {
  image_limits limits{};  ///< of the stored image, and of the bytes of its pixels in `Format`
  bool orient = true;     ///< whether the orientation is applied
  bool recover = false;   ///< whether a damaged image becomes what is left of it

  static constexpr std::string_view codec_name = "tiff";
  static constexpr std::string_view extensions[] = {"tif", "tiff"};
  static constexpr bool one_at_a_time = true;
  using scratch = tiff_scratch;

  /// Whether these are the first bytes of a TIFF, or of a BigTIFF.
  [[nodiscard]] static bool recognises(bytes_view bytes) noexcept {
    if (bytes.size() < 4) return false;
    const std::string_view head = text_of(bytes.first(4));
    for (const std::string_view one : {std::string_view("II*\0", 4), std::string_view("MM\0*", 4),
                                       std::string_view("II+\0", 4), std::string_view("MM\0+", 4)})
      if (head == one) return true;
    return false;
  }

  template <byte_element Bytes>
  [[nodiscard]] tiff_image<Format> decode(const Bytes& in, scratch& s) const {
    const bytes_view bytes = as_bytes(in);
    detail::begin_image<tiff_as>(bytes, s);
    const detail::tiff_reader reader(bytes);
    constexpr std::size_t pixel_bytes = sizeof(typename Format::value_type) * Format::channels;
    detail::check_image_size(reader.size(),
                             reader.plain() ? pixel_bytes : std::max<std::size_t>(pixel_bytes, 4), limits,
                             codec_name);
    if (const std::uint64_t block = reader.block_bytes(); block / 8 > limits.bytes)
      throw error(errc::limit, {"the tiff image has strips or tiles of ", block,
                                " bytes, which is beyond its limits; raise them with .limits"});
    return {s, {bytes, reader.size(), orient ? reader.turn() : orientation::upright, recover}};
  }
};

/// TIFF to RGB, 8 bits each.
using tiff = tiff_as<rgb8>;

}  // namespace penstock::inline v0_1
