// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<avif/avif.h>)
#error "penstock/codec/avif.hpp needs libavif: link penstock::avif"
#endif

#include <penstock/base/owned.hpp>
#include <penstock/codec/detail/stored_image.hpp>

#include <avif/avif.h>

#include <memory>
#include <new>

namespace penstock::inline v0_1 {

namespace detail {

class avif_reader {
 public:
  /// Reads what is known of the image without its pixels. Throws `errc::format` if it is damaged.
  explicit avif_reader(bytes_view file) : decoder_(avifDecoderCreate()) {
    if (!decoder_) throw std::bad_alloc();
    decoder_->maxThreads = 1;
    // The orientation of HEIF is in properties of the image, and that of EXIF does not count.
    decoder_->ignoreExif = decoder_->ignoreXMP = AVIF_TRUE;
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(file.data());
    check(avifDecoderSetIOMemory(decoder_.get(), bytes, file.size()));
    check(avifDecoderParse(decoder_.get()));
  }

  [[nodiscard]] image_size size() const noexcept { return {decoder_->image->width, decoder_->image->height}; }
  [[nodiscard]] bool animated() const noexcept { return decoder_->imageCount > 1; }
  /// As Pillow says it: first the turn, then the mirror.
  [[nodiscard]] orientation turn() const noexcept {
    const avifImage& image = *decoder_->image;
    const bool mirrored = (image.transformFlags & AVIF_TRANSFORM_IMIR) != 0;
    const unsigned angle = (image.transformFlags & AVIF_TRANSFORM_IROT) != 0 ? image.irot.angle & 3u : 0;
    const bool sideways = mirror_axis(image.imir) != 0;  // left and right change places
    constexpr orientation plain[] = {orientation::upright, orientation::rotated_270, orientation::rotated_180,
                                     orientation::rotated_90};
    constexpr orientation upside_down[] = {orientation::flipped, orientation::transposed,
                                           orientation::mirrored, orientation::transversed};
    constexpr orientation turned_round[] = {orientation::mirrored, orientation::transversed,
                                            orientation::flipped, orientation::transposed};
    return !mirrored ? plain[angle] : sideways ? turned_round[angle] : upside_down[angle];
  }
  /// Decodes the first image to RGB, or to RGBA where there is alpha. `room(bytes)`: where to.
  template <class Room>
  std::size_t decode(const Room& room) {
    const image_size said = size();
    check(avifDecoderNextImage(decoder_.get()));
    if (size() != said)  // which is what callers have made room for
      throw error(errc::format,
                  "the avif image is damaged: its pixels are of another size than its header says");
    avifRGBImage rgb;
    avifRGBImageSetDefaults(&rgb, decoder_->image);
    rgb.depth = 8;
    const std::size_t channels = decoder_->image->alphaPlane != nullptr ? 4 : 3;
    rgb.format = channels == 4 ? AVIF_RGB_FORMAT_RGBA : AVIF_RGB_FORMAT_RGB;
    const std::size_t row = rgb.width * channels;
    rgb.rowBytes = static_cast<std::uint32_t>(row);
    rgb.pixels = room(row * rgb.height);
    check(avifImageYUVToRGB(decoder_->image, &rgb));
    return channels;
  }

 private:
  /// The member is `mode` until libavif 0.11, and `axis` from 1.0.
  template <class Mirror>
  static unsigned mirror_axis(const Mirror& mirror) noexcept {
    if constexpr (requires { mirror.axis; })
      return mirror.axis;
    else
      return mirror.mode;
  }
  static void check(avifResult result) {
    switch (result) {
      case AVIF_RESULT_OK:
        return;
      case AVIF_RESULT_OUT_OF_MEMORY:
        throw std::bad_alloc();
      case AVIF_RESULT_TRUNCATED_DATA:
        refuse_truncated("avif");
      case AVIF_RESULT_NO_CODEC_AVAILABLE:
        throw error(errc::argument,
                    "libavif was built without a decoder of AV1; it needs dav1d, libgav1 or libaom");
      default:
        throw error(errc::format, {"the avif image is damaged: ", avifResultToString(result)});
    }
  }

  std::unique_ptr<avifDecoder, freed_by<avifDecoderDestroy>> decoder_;
};

}  // namespace detail

/// The per-worker memory of `avif`: pixels. libavif's own memory cannot be kept.
class avif_scratch : public detail::decoder_scratch<"avif"> {
 public:
  /// Decodes the image, and returns a part of it.
  template <pixel_format Format>
  [[nodiscard]] auto decode(const job_type& what, const image_part& part) {
    constexpr std::size_t to_channels = Format::channels;
    detail::avif_reader reader(what.file);
    std::uint8_t* decoded = nullptr;
    const std::size_t channels =
        reader.decode([&](std::size_t bytes) { return decoded = room_for<std::uint8_t>(decoded_, bytes); });
    using view = pixel_view<std::uint8_t, to_channels>;
    if (channels == to_channels) return view(decoded, what.stored).part(part);
    auto* const pixels =
        room_for<std::uint8_t>(image.pixels, std::size_t{part.width} * part.height * to_channels);
    std::uint8_t* to = pixels;
    for (std::uint32_t y = part.y; y < part.y + part.height; ++y) {
      const std::uint8_t* pixel = decoded + (std::size_t{y} * what.stored.width + part.x) * channels;
      for (std::uint32_t x = 0; x < part.width; ++x, pixel += channels, to += to_channels)
        detail::put_pixel<to_channels>(pixel[0], pixel[1], pixel[2], std::uint8_t{255}, to);
    }
    return view(pixels, part.size());
  }

 private:
  buffer decoded_;
};

/// An AVIF that is not decoded yet: a `lazy_image` over bytes that are valid as long as the codec's input.
template <pixel_format Format>
using avif_image = detail::stored_image<avif_scratch, Format>;

/// AVIF, decoded with libavif to pixels of `Format`: gray8, rgb8 or rgba8.
///
/// In: any byte element. Out: a `lazy_image` of the size at which the image is shown: the turns and mirrors
/// that the file has as properties (irot, imir) are applied, unless `orient` is false; the orientation in
/// EXIF does not count, as the format says. Nothing is decoded until the image is read, and then all of it.
/// Images of 10 and 12 bits become 8; colours are those that libavif's `avifImageYUVToRGB` makes, as in
/// Pillow; alpha is dropped for rgb8 and gray8; gray is Pillow's luma of the colours. Profiles are ignored.
/// Kind: pointwise, keeps all guarantees. Cost: libavif's and that of its decoder of AV1, which allocate
/// memory for each image; dav1d also writes a line about damaged data to the error stream. Penstock itself
/// allocates nothing once the scratch has grown. Thread-safe, with a scratch per thread.
/// Throws `errc::limit` for sizes beyond `limits`, before pixels are allocated (libavif has a limit of its
/// own, 2^28 pixels); `errc::format` for what is no AVIF, animated (unless `first_frame`), damaged or
/// truncated;
/// `errc::argument` if libavif has no decoder.
///
///     auto pictures = directory("pictures") | decode<avif>;
template <pixel_format Format>
struct avif_as {
  static_assert(std::same_as<typename Format::value_type, std::uint8_t>,
                "penstock: avif images become 8 bits a channel; write avif_as<gray8>, <rgb8> or <rgba8>");

  image_limits limits{};     ///< of the stored image, and of the bytes of its pixels in `Format`
  bool orient = true;        ///< whether the orientation is applied
  bool first_frame = false;  ///< whether an animation becomes its first image; otherwise it is an error

  static constexpr std::string_view codec_name = "avif";
  static constexpr std::string_view extensions[] = {"avif"};
  static constexpr bool one_at_a_time = true;
  using scratch = avif_scratch;

  [[nodiscard]] static bool recognises(bytes_view bytes) noexcept {
    if (bytes.size() < 12) return false;
    const std::string_view kind = text_of(bytes).substr(4, 8);
    return kind == "ftypavif" || kind == "ftypavis";
  }

  template <byte_element Bytes>
  [[nodiscard]] avif_image<Format> decode(const Bytes& in, scratch& s) const {
    const bytes_view bytes = as_bytes(in);
    detail::begin_image<avif_as>(bytes, s);
    const detail::avif_reader reader(bytes);
    detail::check_image_size(reader.size(), Format::channels, limits, codec_name);
    if (!first_frame && reader.animated()) detail::refuse_animation(codec_name);
    return {s, {bytes, reader.size(), orient ? reader.turn() : orientation::upright}};
  }
};

/// AVIF to RGB, 8 bits each.
using avif = avif_as<rgb8>;

}  // namespace penstock::inline v0_1
