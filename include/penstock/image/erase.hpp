// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/random.hpp>
#include <penstock/image/operation.hpp>
#include <penstock/image/padded.hpp>

#include <numbers>

/// Rectangles of images that are painted over.
namespace penstock::inline v0_1 {

/// As the value of `erase` and `random_erasing`: each value is drawn for itself, torchvision's "random".
struct random_pixels_tag {};
inline constexpr random_pixels_tag random_pixels{};

/// What a rectangle is painted with: `pixel_fill`, or `random_pixels`.
class erase_value {
 public:
  constexpr erase_value() = default;
  constexpr erase_value(double all) : values_(all) {}
  constexpr erase_value(std::initializer_list<double> values) : values_(values) {}
  constexpr erase_value(const pixel_fill& values) : values_(values) {}
  constexpr erase_value(random_pixels_tag) : random_(true) {}

  [[nodiscard]] constexpr const pixel_fill& values() const noexcept { return values_; }
  [[nodiscard]] constexpr bool random() const noexcept { return random_; }

 private:
  pixel_fill values_ = 0;
  bool random_ = false;
};

namespace detail {

/// Random value number `i` of a key: any integer, or a normally distributed number of mean 0 and variance 1.
/// Source: Box and Muller, "A note on the generation of random normal deviates", 1958.
template <class T>
[[nodiscard]] T random_value(std::uint64_t key, std::uint64_t i) noexcept {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(mix64(key + i) >> 32);
  } else {
    const std::uint64_t bits = mix64(key + i / 2);
    const double u = (static_cast<double>(bits >> 32) + 1) * 0x1p-32;  // in (0, 1]
    const double angle = static_cast<double>(bits & 0xffffffffu) * 0x1p-32 * 2 * std::numbers::pi;
    const double radius = std::sqrt(-2 * std::log(u));
    return static_cast<T>(static_cast<float>(radius * (i % 2 == 0 ? std::cos(angle) : std::sin(angle))));
  }
}

/// What to paint over an image: a rectangle, and its pixels.
template <class T, std::size_t Channels>
struct painted_box {
  image_part box;
  std::array<T, Channels> pixel{};
  std::uint64_t key = 0;
  bool random = false;

  painted_box(const image_part& where, const erase_value& value, std::uint64_t random_key)
      : box(where), pixel(value.values().as<T, Channels>()), key(random_key), random(value.random()) {}

  /// Paints the part of the box that is in `part`, of which `first` is the upper left pixel.
  void paint(const image_part& part, T* first, const element_strides& strides) const noexcept {
    const image_part hit = common_part(part, box);
    for (std::uint32_t y = 0; y < hit.height; ++y) {
      T* const row =
          first + std::int64_t{hit.y - part.y + y} * strides[0] + std::int64_t{hit.x - part.x} * strides[1];
      const std::uint64_t number =
          (std::uint64_t{hit.y - box.y + y} * box.width + (hit.x - box.x)) * Channels;
      for (std::size_t c = 0; c < Channels; ++c) {
        T* to = row + static_cast<std::int64_t>(c) * strides[2];
        for (std::uint32_t x = 0; x < hit.width; ++x, to += strides[1])
          *to = random ? random_value<T>(key, number + x * Channels + c) : pixel[c];
      }
    }
  }
};

}  // namespace detail

/// An image of which a rectangle is painted over; made by `erase` and `random_erasing`.
template <lazy_image I>
class erased_image : public image_over<erased_image<I>, I> {
 public:
  using value_type = typename I::value_type;
  using typename erased_image::image_expression::view_type;

  erased_image(I image, const detail::painted_box<value_type, I::channels>& painted, image_scratch& memory)
      : erased_image::image_over(std::move(image), memory), painted_(painted) {}

  /// The rectangle that is painted; empty if there is none.
  [[nodiscard]] image_part box() const noexcept { return painted_.box; }
  [[nodiscard]] view_type read(const image_part& part) const {
    if (detail::common_part(part, painted_.box).width == 0) return this->image_.read(part);
    return this->drawn(part);
  }
  void draw(const image_part& part, const destination<value_type>& into) const {
    this->image_.draw(part, into);
    painted_.paint(part, into.data(), into.strides());
  }

 private:
  detail::painted_box<value_type, I::channels> painted_;
};

/// Paints a rectangle over; made by `erase(box, value)`.
class erase_operation : public detail::keeping_places<image_operation, detail::draws::random_numbers> {
 public:
  constexpr erase_operation(const image_part& box, const erase_value& value) : box_(box), value_(value) {}

  template <lazy_image I>
  [[nodiscard]] erased_image<I> operator()(const I& image, const call<image_scratch>& c) const {
    const std::uint64_t key = value_.random() ? c.random()() : 0;
    return {image, {detail::common_part(box_, whole_of(image.size())), value_, key}, c.scratch};
  }

 private:
  image_part box_;
  erase_value value_;
};

/// Paints a rectangle of every image with a pixel, by default with zeros; what is outside an image does not
/// count. `random_pixels` paints noise, other for each sample: any integers, or for other types numbers of
/// mean 0 and variance 1. torchvision: functional.erase. It counts as an operation that draws, with a
/// constant too.
///
/// Works on images of any type: before `normalize` values are from 0 to 255, after it they are not. The image
/// below is still read whole; painting costs a pass over the rectangle.
///
///     const auto top = erase({0, 0, 16, 8});                   // x, y, width, height
[[nodiscard]] constexpr erase_operation erase(const image_part& box, const erase_value& value = {}) {
  return {box, value};
}

}  // namespace penstock::inline v0_1
