// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/random.hpp>
#include <penstock/image/operation.hpp>

namespace penstock::inline v0_1 {

/// How a lazy image is mirrored.
///   none         it is passed through
///   horizontal   left and right change places
///   vertical     top and bottom do
enum class mirroring : std::uint8_t { none, horizontal, vertical };

namespace detail {

/// Writes a row's pixels in the other order: `pixels` of them, which must not overlap `out`.
template <class T, std::size_t Channels>
void reverse_pixels(const T* from, std::size_t pixels, T* out) noexcept {
  if (pixels == 0) return;
  if constexpr (sizeof(T) == 1 && Channels == 3) {
    // Four bytes at a time, of which the next pixel overwrites one; the first and the last one are exact.
    const T* at = from + (pixels - 1) * 3;
    std::memcpy(out, at, 3);
    for (std::size_t x = 1; x + 1 < pixels; ++x) std::memcpy(out + x * 3, at - x * 3, 4);
    std::memcpy(out + (pixels - 1) * 3, from, 3);
  } else {
    for (std::size_t x = 0; x < pixels; ++x)
      std::memcpy(out + x * Channels, from + (pixels - 1 - x) * Channels, Channels * sizeof(T));
  }
}

}  // namespace detail

/// A lazy image in a mirror. Vertically it costs nothing: the inner image is drawn from the last row up.
/// Horizontally an image that is resampled gets its columns in the other order; of others each row is read,
/// and written in the other order to its destination.
template <lazy_image I>
class mirrored : public image_over<mirrored<I>, I> {
 public:
  using value_type = typename I::value_type;

  mirrored(I image, mirroring how, image_scratch& scratch)
      : mirrored::image_over(std::move(image), scratch), how_(how) {}

  [[nodiscard]] typename mirrored::view_type read(const image_part& part) const {
    if (how_ == mirroring::none) return this->image_.read(part);
    return this->drawn(part);
  }

  void draw(const image_part& part, const destination<value_type>& into) const {
    if (part.width == 0 || part.height == 0) return;
    if (how_ == mirroring::none) return this->image_.draw(part, into);
    element_strides strides = into.strides();
    const image_size size = this->image_.size();
    image_part inner = part;
    if (how_ == mirroring::vertical) {
      inner.y = size.height - part.y - part.height;
      value_type* const last = into.data() + std::int64_t{part.height - 1} * strides[0];
      strides[0] = -strides[0];
      return this->image_.draw(inner, destination<value_type>(last, into.shape(), strides, into.space()));
    }
    inner.x = size.width - part.x - part.width;
    if constexpr (requires { this->image_.draw_mirrored(inner, into); }) {
      if (this->image_.mirrors()) return this->image_.draw_mirrored(inner, into);
    }
    const auto pixels = this->image_.read(inner);
    if (detail::interleaved<I::channels>(into)) {
      for (std::uint32_t y = 0; y < part.height; ++y)
        detail::reverse_pixels<value_type, I::channels>(pixels.row(y), part.width,
                                                        into.data() + std::int64_t{y} * strides[0]);
    } else {
      value_type* const last = into.data() + std::int64_t{part.width - 1} * strides[1];
      strides[1] = -strides[1];
      copy_pixels(pixels, destination<value_type>(last, into.shape(), strides, into.space()));
    }
  }

 private:
  mirroring how_;
};

/// What `horizontal_flip(p)` and `vertical_flip(p)` make: a function for `map`.
class flip_operation : public detail::moving_places<image_operation, detail::draws::random_numbers> {
 public:
  /// Throws `errc::argument` unless p is in [0, 1].
  flip_operation(mirroring how, double p) : how_(how), p_(p) {
    if (!(p >= 0 && p <= 1))
      throw error(errc::argument, "a flip's probability is a number from 0 to 1, as in horizontal_flip(0.5)");
  }

  template <lazy_image I>
  [[nodiscard]] mirrored<I> operator()(const I& image, const call<image_scratch>& c) const {
    rng random = c.random();
    return {image, choose(random), c.scratch};
  }

  [[nodiscard]] std::string describe() const {
    return how_ == mirroring::vertical ? "vertical_flip" : "horizontal_flip";
  }
  template <class Places>
  void follow(Places& places, rng& random) const {
    places.mirror(choose(random));
  }
  /// Whether this sample is mirrored. It depends on the random numbers only.
  [[nodiscard]] mirroring choose(rng& random) const noexcept {
    return random.chance(p_) ? how_ : mirroring::none;
  }

 private:
  mirroring how_;
  double p_;
};

/// Mirrors images with probability `p`: left and right change places. torchvision's `RandomHorizontalFlip`.
///
/// In: a lazy image of any kind. Out: a lazy image. Pointwise; draws a random number, even if p is 0 or 1.
/// With one `key`, all fields of a sample are mirrored, or none. Throws `errc::argument` unless p is in
/// [0, 1].
///
///     auto train = map<"jpg">(random_resized_crop(224), horizontal_flip());
[[nodiscard]] inline flip_operation horizontal_flip(double p = 0.5) { return {mirroring::horizontal, p}; }

/// Mirrors images with probability `p`: top and bottom change places. torchvision's `RandomVerticalFlip`.
/// Otherwise as `horizontal_flip`.
///
///     auto train = map<"jpg">(vertical_flip(0.25));
[[nodiscard]] inline flip_operation vertical_flip(double p = 0.5) { return {mirroring::vertical, p}; }

}  // namespace penstock::inline v0_1
