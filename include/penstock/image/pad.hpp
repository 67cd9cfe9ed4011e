// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/random.hpp>
#include <penstock/image/operation.hpp>
#include <penstock/image/padded.hpp>

namespace penstock::inline v0_1 {

/// How many pixels are added on each side.
struct image_padding {
  std::uint32_t left = 0, top = 0, right = 0, bottom = 0;

  image_padding() = default;
  /// An equal number of pixels on all sides.
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  image_padding(T all)
      : image_padding(any_count(all), any_count(all)) {}  // NOLINT(google-explicit-constructor)
  image_padding(any_count left_right, any_count top_bottom)
      : image_padding(left_right, top_bottom, left_right, top_bottom) {}
  image_padding(any_count l, any_count t, any_count r, any_count b)
      : left(detail::side_of(l, "pad", 0)),
        top(detail::side_of(t, "pad", 0)),
        right(detail::side_of(r, "pad", 0)),
        bottom(detail::side_of(b, "pad", 0)) {}
};

/// What is put on the sides.
struct pad_options {
  pixel_fill fill = 0;  ///< for `padding_mode::constant`
  padding_mode mode = padding_mode::constant;
};

namespace detail {

/// The base of operations that take a rectangle of an image's plane, see `padded`: `Self` has its size,
/// `new_size(input)`, and its upper left corner, `choose(input, random)`. It may draw, but depends on nothing
/// else.
template <class Self, draws Drawn = draws::nothing>
class framing : public moving_places<image_operation, Drawn> {
 public:
  template <lazy_image I>
  [[nodiscard]] padded<I> operator()(const I& image, const call<image_scratch>& c) const {
    rng random = Drawn == draws::nothing ? rng(0, 0, 0) : c.random();
    const image_size input = image.size();
    const auto [x, y] = self().choose(input, random);
    return {image, x, y, self().new_size(input), fill_, mode_, c.scratch};
  }
  template <class Places>
  void follow(Places& places, rng& random) const {
    const image_size input = places.size();
    const auto [x, y] = self().choose(input, random);
    places.crop(x, y, self().new_size(input));
  }
  [[nodiscard]] Self for_mask(const pixel_fill& fill) const {
    Self filling = self();
    filling.fill_ = fill;
    return filling;
  }
  [[nodiscard]] const pixel_fill& fill() const noexcept { return fill_; }
  [[nodiscard]] padding_mode mode() const noexcept { return mode_; }

 protected:
  explicit framing(const pixel_fill& fill = 0, padding_mode mode = padding_mode::constant)
      : fill_(fill), mode_(mode) {}

 private:
  [[nodiscard]] const Self& self() const noexcept { return static_cast<const Self&>(*this); }

  pixel_fill fill_;
  padding_mode mode_;
};

}  // namespace detail

/// What `pad(...)` makes: a function for `map`.
class pad_operation : public detail::framing<pad_operation> {
 public:
  pad_operation(const image_padding& padding, const pad_options& options)
      : framing(options.fill, options.mode), padding_(padding) {}

  [[nodiscard]] std::pair<std::int64_t, std::int64_t> choose(const image_size& /*input*/,
                                                             rng& /*random*/) const noexcept {
    return {-std::int64_t{padding_.left}, -std::int64_t{padding_.top}};
  }
  [[nodiscard]] bool may_fill(const image_size& input) const { return new_size(input) != input; }
  [[nodiscard]] image_size new_size(const image_size& input) const {
    return detail::padded_size(std::uint64_t{input.width} + padding_.left + padding_.right,
                               std::uint64_t{input.height} + padding_.top + padding_.bottom);
  }

 private:
  image_padding padding_;
};

/// Adds pixels on the sides of images: of a colour, or made of those at the edges. torchvision's `Pad`.
///
/// In: a lazy image of any kind. Out: a lazy image. Pointwise; costs nothing but the writing.
/// Throws `errc::argument` if a number is negative or larger than 2^20; for a sample, `errc::argument` if
/// `fill` has another number of channels than the image, or a value that its type does not hold, and
/// `errc::shape` if there is no pixel to repeat.
///
///     auto wider = map<"jpg">(pad(8, 0, {.mode = padding_mode::reflect}));  // left and right, not top
[[nodiscard]] inline pad_operation pad(any_count all, const pad_options& options = {}) {
  return {image_padding(all, all), options};
}
[[nodiscard]] inline pad_operation pad(any_count left_right, any_count top_bottom,
                                       const pad_options& options = {}) {
  return {image_padding(left_right, top_bottom), options};
}
[[nodiscard]] inline pad_operation pad(any_count left, any_count top, any_count right, any_count bottom,
                                       const pad_options& options = {}) {
  return {image_padding(left, top, right, bottom), options};
}

}  // namespace penstock::inline v0_1
