// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/image_of.hpp>
#include <penstock/codec/pixels.hpp>

namespace penstock::inline v0_1 {

namespace detail {
/// A value of `ffcv` that may be pixels, or a compressed image.
template <class T>
concept ffcv_image_value = requires(const T& value) {
  { value.place().raw_image } -> std::convertible_to<bool>;
};
}  // namespace detail

/// Reads the images of FFCV's files: `ffcv_image<jpeg>`, or `ffcv_image<>` if none is compressed.
///
///     auto samples = ffcv("imagenet_train.beton") | decode<field<"image", ffcv_image<>>>;
///
/// In: an image of `ffcv`, which knows whether it is compressed; other bytes are taken for compressed ones.
/// Out: a `lazy_image` of red, green and blue, 8 bits each; pixels are not copied, and a crop reads its part
/// alone.
/// Kind: pointwise, keeps all guarantees. Cost: none for pixels; that of the codec for compressed images.
/// Thread-safe, with a scratch per thread.
/// Throws errc::format for a compressed image if there is no codec for it, and what the codec throws.
/// Source: FFCV, ffcv/fields/rgb_image.py.
template <class... Codec>
class ffcv_image {
  static_assert(sizeof...(Codec) <= 1, "penstock: ffcv_image<jpeg> has one codec for compressed images");
  static_assert((image_codec<Codec> && ...),
                "penstock: ffcv_image<C>: C must be a codec of images, as jpeg is");

 public:
  static constexpr std::string_view codec_name = "ffcv_image";
  static constexpr bool one_at_a_time = (lone_codec<Codec> || ...);
  using scratch = std::tuple<image_scratch, scratch_of<Codec>...>;
  using image_type = one_of_images<raw_image<rgb8>, decoded<Codec, bytes_view>...>;

  ffcv_image() = default;
  constexpr explicit ffcv_image(Codec... codec)
    requires(sizeof...(Codec) == 1)
      : codec_(std::move(codec)...) {}

  template <byte_element Bytes>
  [[nodiscard]] image_type decode(const Bytes& in, scratch& s) const {
    if constexpr (detail::ffcv_image_value<Bytes>) {
      const auto& found = in.place();
      if (found.raw_image)
        return {std::in_place_index<0>,
                raw_image<rgb8>(std::get<0>(s), in.finish(), image_size{found.width, found.height}, false)};
    }
    if constexpr (sizeof...(Codec) == 0)
      throw error(errc::format, "the image is a JPEG: write ffcv_image<jpeg>, and link penstock::jpeg");
    else
      return {std::in_place_index<1>, std::get<0>(codec_).decode(as_bytes(in), std::get<1>(s))};
  }

 private:
  std::tuple<Codec...> codec_;
};

}  // namespace penstock::inline v0_1
