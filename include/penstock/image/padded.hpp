// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/any_count.hpp>
#include <penstock/core/error.hpp>
#include <penstock/image/lazy_image.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace penstock::inline v0_1 {

/// What lies around an image. torchvision's `padding_mode`.
///   constant    a colour
///   edge        the nearest pixel of the image:           aaa abcd ddd
///   reflect     the image in a mirror on its last pixel:  dcb abcd cba
///   symmetric   the image in a mirror behind it:          cba abcd dcb
/// Beyond the mirrored image lies the next one, as in numpy.pad.
enum class padding_mode : std::uint8_t { constant, edge, reflect, symmetric };

/// A colour for pixels that are not in an image: a value for all channels, or one for each. Values are those
/// of the image: 0 to 255 for images of bytes.
class pixel_fill {
 public:
  template <class T>
    requires((std::integral<T> || std::floating_point<T>) && !std::same_as<T, bool>)
  constexpr pixel_fill(T all)
      : pixel_fill({static_cast<double>(all)}) {}  // NOLINT(google-explicit-constructor)
  /// One for each channel. Throws `errc::argument` if there are none or more than 4, or one is not finite.
  constexpr pixel_fill(std::initializer_list<double> channels) : count_(channels.size()) {
    if (count_ == 0 || count_ > values_.size())
      throw error(errc::argument,
                  {"a fill of ", count_, " values; write one for all channels, or one for each"});
    for (std::size_t i = 0; i < count_; ++i) {
      values_[i] = channels.begin()[i];
      if (!(values_[i] - values_[i] == 0))
        throw error(errc::argument, "a fill that is not a finite number; write the value of a pixel");
    }
  }

  /// As a pixel. Throws `errc::argument` if the number of channels is another one, or a value is none of T:
  /// beyond its range, or not whole.
  template <class T, std::size_t Channels>
  [[nodiscard]] std::array<T, Channels> as() const {
    if (count_ != 1 && count_ != Channels)
      throw error(errc::argument, {"a fill of ", count_, " values for images of ", Channels,
                                   " channels; write one for all channels, or one for each"});
    std::array<T, Channels> pixel{};
    for (std::size_t i = 0; i < Channels; ++i) {
      const double value = values_[count_ == 1 ? 0 : i];
      if constexpr (std::is_integral_v<T>) {
        if (value < static_cast<double>(std::numeric_limits<T>::min()) ||
            value > static_cast<double>(std::numeric_limits<T>::max()) || value != std::floor(value))
          throw error(errc::argument,
                      {"a fill that is no value of these images; write whole numbers from 0 to ",
                       std::uint64_t{std::numeric_limits<T>::max()}});
      }
      if constexpr (std::is_arithmetic_v<T>)
        pixel[i] = static_cast<T>(value);
      else
        pixel[i] = static_cast<T>(static_cast<float>(value));  // half, bfloat16
    }
    return pixel;
  }

 private:
  std::array<double, 4> values_{};
  std::size_t count_;
};

namespace detail {

/// The longest side of an image that an operation may be asked for.
inline constexpr std::uint32_t longest_side = 1u << 20;

/// A side of an image, or a distance in one. Throws `errc::argument`, naming `operation`, if it is negative,
/// less than `least`, or more than 2^20.
[[nodiscard]] inline std::uint32_t side_of(const any_count& n, std::string_view operation,
                                           std::uint32_t least = 1) {
  const std::uint64_t value = n.of(operation);
  if (value < least)
    throw error(errc::argument, {operation, ": a side of ", value, " pixels; write at least ", least});
  if (value > longest_side)
    throw error(errc::argument, {operation, ": ", value, " pixels; write at most ", longest_side});
  return static_cast<std::uint32_t>(value);
}

/// A size as an operation is given it: "(224)", or "(height, width)".
[[nodiscard]] inline std::string sides_text(const image_size& size) {
  const std::string height = "(" + std::to_string(size.height);
  return size.height == size.width ? height + ")" : height + ", " + std::to_string(size.width) + ")";
}

/// The index in [0, n) that stands for `i`, which may be outside. `n` is not 0.
[[nodiscard]] constexpr std::int64_t padded_index(std::int64_t i, std::int64_t n,
                                                  padding_mode mode) noexcept {
  if (i >= 0 && i < n) return i;
  if (mode == padding_mode::edge || n == 1) return i < 0 ? 0 : n - 1;
  const std::int64_t period = mode == padding_mode::reflect ? 2 * (n - 1) : 2 * n;
  const std::int64_t at = (i % period + period) % period;
  return at < n ? at : mode == padding_mode::reflect ? period - at : period - 1 - at;
}

/// Throws `errc::limit` if a side is longer than 2^31 - 1.
[[nodiscard]] inline image_size padded_size(std::uint64_t width, std::uint64_t height) {
  constexpr std::uint64_t maximum = std::numeric_limits<std::int32_t>::max();
  if (width > maximum || height > maximum) [[unlikely]]
    throw error(errc::limit, {"an image of ", width, " x ", height, " pixels is too large; pad it less"});
  return {static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height)};
}

/// A part of a destination of shape (height, width, channels).
template <class T>
[[nodiscard]] destination<T> part_of(const destination<T>& into, const image_part& part) {
  const element_strides strides = into.strides();
  return {into.data() + std::int64_t{part.y} * strides[0] + std::int64_t{part.x} * strides[1],
          extents(std::size_t{part.height}, std::size_t{part.width}, into.shape()[2]), strides, into.space()};
}

template <class T, std::size_t Channels>
void fill_pixels(const std::array<T, Channels>& pixel, const destination<T>& into) {
  const element_strides strides = into.strides();
  const auto height = static_cast<std::int64_t>(into.shape()[0]);
  const auto width = static_cast<std::int64_t>(into.shape()[1]);
  for (std::int64_t y = 0; y < height; ++y) {
    if (strides[2] == 1) {
      for (std::int64_t x = 0; x < width; ++x)
        std::copy_n(pixel.data(), Channels, into.data() + y * strides[0] + x * strides[1]);
    } else {
      for (std::size_t c = 0; c < Channels; ++c) {
        T* const row = into.data() + y * strides[0] + static_cast<std::int64_t>(c) * strides[2];
        for (std::int64_t x = 0; x < width; ++x) row[x * strides[1]] = pixel[c];
      }
    }
  }
}

}  // namespace detail

/// A rectangle of the plane in which a lazy image lies with its upper left corner at (0, 0): a part of it, or
/// all of it and more. What is not in the image is filled. Made by `pad`, `center_crop` and `random_crop`.
///
/// Reads no more of the image than needed. A part that lies within the image is passed through; so is what
/// lies in it when it is drawn, straight to its destination, with `padding_mode::constant`.
template <lazy_image I>
class padded : public image_over<padded<I>, I> {
 public:
  using value_type = typename I::value_type;

  /// (x, y) is the rectangle's upper left corner in the image's plane.
  padded(I image, std::int64_t x, std::int64_t y, const image_size& size, const pixel_fill& fill,
         padding_mode mode, image_scratch& scratch)
      : padded::image_over(std::move(image), scratch),
        x_(x),
        y_(y),
        size_(size),
        inner_(this->image_.size()),
        fill_(fill.as<value_type, I::channels>()),
        mode_(mode) {
    if (mode != padding_mode::constant && (inner_.width == 0 || inner_.height == 0) && size.width != 0 &&
        size.height != 0)
      throw error(errc::shape, {"an image of ", inner_.width, " x ", inner_.height,
                                " has no pixels to repeat; pad it with a fill"});
  }

  [[nodiscard]] image_size size() const noexcept { return size_; }

  [[nodiscard]] typename padded::view_type read(const image_part& part) const {
    if (within(part)) return this->image_.read(shifted(part));
    return this->drawn(part);
  }

  void draw(const image_part& part, const destination<value_type>& into) const {
    if (part.width == 0 || part.height == 0) return;
    if (within(part)) return this->image_.draw(shifted(part), into);
    if (mode_ == padding_mode::constant)
      draw_filled(part, into);
    else
      draw_repeated(part, into);
  }

 private:
  [[nodiscard]] bool within(const image_part& part) const noexcept {
    return x_ + part.x >= 0 && y_ + part.y >= 0 && x_ + part.x + part.width <= inner_.width &&
           y_ + part.y + part.height <= inner_.height;
  }
  [[nodiscard]] image_part shifted(const image_part& part) const noexcept {
    return {static_cast<std::uint32_t>(x_ + part.x), static_cast<std::uint32_t>(y_ + part.y), part.width,
            part.height};
  }
  /// Which of `count` indexes, from `first` on, are in [0, n): where they begin and end.
  [[nodiscard]] static std::pair<std::uint32_t, std::uint32_t> inside(std::int64_t first, std::uint32_t count,
                                                                      std::uint32_t n) noexcept {
    const auto begin = std::clamp<std::int64_t>(-first, 0, count);
    return {static_cast<std::uint32_t>(begin),
            static_cast<std::uint32_t>(std::clamp<std::int64_t>(std::int64_t{n} - first, begin, count))};
  }

  void draw_filled(const image_part& part, const destination<value_type>& into) const {
    const auto [left, right] = inside(x_ + part.x, part.width, inner_.width);
    const auto [top, bottom] = inside(y_ + part.y, part.height, inner_.height);
    const auto fill = [&](std::uint32_t x, std::uint32_t y, std::uint32_t to_x, std::uint32_t to_y) {
      detail::fill_pixels(fill_, detail::part_of(into, {x, y, to_x - x, to_y - y}));
    };
    if (left == right || top == bottom) return fill(0, 0, part.width, part.height);
    fill(0, 0, part.width, top);
    fill(0, top, left, bottom);
    fill(right, top, part.width, bottom);
    fill(0, bottom, part.width, part.height);
    const image_part here{left, top, right - left, bottom - top};
    this->image_.draw(shifted({part.x + left, part.y + top, here.width, here.height}),
                      detail::part_of(into, here));
  }

  /// The indexes that stand for `count` ones from `first` on; and their least one and the end.
  std::pair<std::uint32_t, std::uint32_t> indexes(std::uint32_t* into, std::int64_t first,
                                                  std::uint32_t count, std::uint32_t n) const {
    std::uint32_t least = n, maximum = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      into[i] = static_cast<std::uint32_t>(detail::padded_index(first + i, n, mode_));
      least = std::min(least, into[i]);
      maximum = std::max(maximum, into[i]);
    }
    return {least, maximum + 1};
  }

  void draw_repeated(const image_part& part, const destination<value_type>& into) const {
    std::uint32_t* const columns =
        room_for<std::uint32_t>(this->scratch_->tables, std::size_t{part.width} + part.height);
    std::uint32_t* const rows = columns + part.width;
    const auto [left, right] = indexes(columns, x_ + part.x, part.width, inner_.width);
    const auto [top, bottom] = indexes(rows, y_ + part.y, part.height, inner_.height);
    const auto pixels = this->image_.read({left, top, right - left, bottom - top});
    const element_strides strides = into.strides();
    for (std::uint32_t y = 0; y < part.height; ++y) {
      const value_type* const input = pixels.row(rows[y] - top);
      value_type* to = into.data() + std::int64_t{y} * strides[0];
      for (std::uint32_t x = 0; x < part.width; ++x, to += strides[1])
        for (std::size_t c = 0; c < I::channels; ++c)
          to[static_cast<std::int64_t>(c) * strides[2]] = input[(columns[x] - left) * I::channels + c];
    }
  }

  std::int64_t x_, y_;
  image_size size_, inner_;
  std::array<value_type, I::channels> fill_;
  padding_mode mode_;
};

}  // namespace penstock::inline v0_1
