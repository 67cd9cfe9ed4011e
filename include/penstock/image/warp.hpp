// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/image/interpolation.hpp>
#include <penstock/image/operation.hpp>
#include <penstock/image/padded.hpp>
#include <penstock/image/warp_matrix.hpp>

namespace penstock::inline v0_1 {

/// Options of `warp`, and of the pixels of `rotate` and `affine`.
struct warp_options {
  interpolation how = interpolation::nearest;  ///< or bilinear
  pixel_fill fill = 0;                         ///< what is outside the image
};

namespace detail {

/// Throws `errc::argument`, in the name of `function`, unless images can be warped like this.
inline void check_warp(std::string_view function, interpolation how) {
  if (how != interpolation::nearest && how != interpolation::bilinear)
    throw error(errc::argument, {function, " interpolates nearest or bilinear, and not ", to_string(how)});
}
/// The part of an image that the pixels of `part` need; empty if they are all outside.
[[nodiscard]] inline image_part warp_source(const warp_matrix& matrix, const image_size& from,
                                            const image_size& to, const image_part& part) {
  if (part.width == 0 || part.height == 0 || from.width == 0 || from.height == 0) return {};
  const double left = part.x + 0.5 - 0.5 * to.width, right = left + part.width - 1;
  const double top = part.y + 0.5 - 0.5 * to.height, bottom = top + part.height - 1;
  // the pixels from one that is below all places to one that is above, and one more for rounding
  const auto range = [](double a, double b, double shift, double x0, double x1, double y0, double y1,
                        std::uint32_t length, std::uint32_t& first, std::uint32_t& count) {
    const double middle = shift + 0.5 * length - 0.5;
    const double low = std::fmin(a * x0, a * x1) + std::fmin(b * y0, b * y1) + middle - 2;
    const double high = std::fmax(a * x0, a * x1) + std::fmax(b * y0, b * y1) + middle + 2;
    if (!(high >= 0 && low <= length - 1.0)) return false;
    first = low > 0 ? static_cast<std::uint32_t>(low) : 0;
    const std::uint32_t last = high < length - 1.0 ? static_cast<std::uint32_t>(high) : length - 1;
    count = last - first + 1;
    return true;
  };
  image_part needed;
  if (!range(matrix.a, matrix.b, matrix.c, left, right, top, bottom, from.width, needed.x, needed.width) ||
      !range(matrix.d, matrix.e, matrix.f, left, right, top, bottom, from.height, needed.y, needed.height))
    return {};
  return needed;
}

/// The nearest integer, ties to even, of a number below 2^51: without a call, which `std::nearbyint` is.
[[nodiscard]] inline std::int64_t nearest_integer(double x) noexcept {
  return static_cast<std::int64_t>((x + 0x1.8p52) - 0x1.8p52);
}

}  // namespace detail

/// An image whose pixels come from elsewhere in the one below, by a `warp_matrix`; made by `warp`, `rotate`
/// and `affine`. Reads the bounding box of what the part needs, once, and computes row by row.
template <lazy_image I>
class warped_image : public image_over<warped_image<I>, I> {
 public:
  using value_type = typename I::value_type;
  using typename warped_image::image_expression::view_type;

  warped_image(I image, const warp_matrix& matrix, const image_size& size, const warp_options& options,
               image_scratch& memory)
      : warped_image::image_over(std::move(image), memory),
        matrix_(matrix),
        size_(size),
        bilinear_(options.how == interpolation::bilinear),
        fill_(options.fill.template as<value_type, I::channels>()) {}

  [[nodiscard]] image_size size() const { return size_; }
  /// Where pixels come from.
  [[nodiscard]] const warp_matrix& matrix() const noexcept { return matrix_; }
  [[nodiscard]] view_type read(const image_part& part) const { return this->drawn(part); }
  void draw(const image_part& part, const destination<value_type>& into) const {
    const source input = source_of(part);
    detail::write_rows<I::channels>(
        into, part,
        [&] { return room_for<value_type>(this->scratch_->work, std::size_t{part.width} * I::channels); },
        [&](std::uint32_t y, value_type* row) { write_row(input, part.x, part.y + y, part.width, row); });
  }

 private:
  struct source {
    image_part part;
    view_type pixels;
    [[nodiscard]] bool holds(std::int64_t x, std::int64_t y) const noexcept {
      return x >= part.x && y >= part.y && x < std::int64_t{part.x} + part.width &&
             y < std::int64_t{part.y} + part.height;
    }
    [[nodiscard]] const value_type* at(std::int64_t x, std::int64_t y) const noexcept {
      return pixels.at(static_cast<std::size_t>(x - part.x), static_cast<std::size_t>(y - part.y));
    }
  };

  [[nodiscard]] source source_of(const image_part& part) const {
    source input{detail::warp_source(matrix_, this->image_.size(), size_, part), {}};
    if (input.part.width != 0) input.pixels = this->image_.read(input.part);
    return input;
  }
  void write_row(const source& given, std::uint32_t first, std::uint32_t y, std::uint32_t width,
                 value_type* to) const {
    // by value: what is written are bytes, which could otherwise be any of these
    const source input = given;
    const std::array<value_type, I::channels> fill = fill_;
    const double a = matrix_.a, d = matrix_.d;
    const bool bilinear = bilinear_;
    if (input.part.width == 0) {
      for (std::uint32_t x = 0; x < width; ++x, to += I::channels) std::copy_n(fill.data(), I::channels, to);
      return;
    }
    const image_size below = this->image_.size();
    const double across = 0.5 - 0.5 * size_.width, down = y + 0.5 - 0.5 * size_.height;
    const double u0 = matrix_.b * down + matrix_.c + 0.5 * below.width - 0.5;
    const double v0 = matrix_.e * down + matrix_.f + 0.5 * below.height - 0.5;
    for (std::uint32_t x = 0; x < width; ++x, to += I::channels) {
      const double offset = first + x + across;
      const double u = a * offset + u0, v = d * offset + v0;
      // not within a pixel of the image; also what is no number
      if (!(u > -1 && v > -1 && u < below.width && v < below.height)) {
        std::copy_n(fill.data(), I::channels, to);
      } else if (bilinear) {
        blend(input, u, v, to);
      } else {
        const std::int64_t nx = detail::nearest_integer(u), ny = detail::nearest_integer(v);
        std::copy_n(input.holds(nx, ny) ? input.at(nx, ny) : fill.data(), I::channels, to);
      }
    }
  }
  void blend(const source& input, double u, double v, value_type* to) const {
    // rounded down, as numbers are above -1
    const std::int64_t x = static_cast<std::int64_t>(u + 1) - 1, y = static_cast<std::int64_t>(v + 1) - 1;
    const float right = static_cast<float>(u - static_cast<double>(x)), left = 1 - right;
    const float low = static_cast<float>(v - static_cast<double>(y)), high = 1 - low;
    std::array<float, I::channels> sum{};
    float inside = 0;
    const auto add = [&](std::int64_t px, std::int64_t py, float weight) {
      if (!input.holds(px, py)) return;
      const value_type* const pixel = input.at(px, py);
      for (std::size_t c = 0; c < I::channels; ++c) sum[c] += static_cast<float>(pixel[c]) * weight;
      inside += weight;
    };
    if (input.holds(x, y) && input.holds(x + 1, y + 1)) [[likely]] {
      const value_type* const above = input.at(x, y);
      const value_type* const under = input.at(x, y + 1);
      if constexpr (sizeof(value_type) == 1 && std::is_integral_v<value_type>) {
        // weights in 2048ths: exact to an eighth of a level
        const int wx = static_cast<int>(right * 2048 + 0.5f), wy = static_cast<int>(low * 2048 + 0.5f);
        for (std::size_t c = 0; c < I::channels; ++c) {
          const int top = above[c] * (2048 - wx) + above[I::channels + c] * wx;
          const int bottom = under[c] * (2048 - wx) + under[I::channels + c] * wx;
          to[c] = static_cast<value_type>((top * (2048 - wy) + bottom * wy + (1 << 21)) >> 22);
        }
        return;
      }
      const float w0 = left * high, w1 = right * high, w2 = left * low, w3 = right * low;
      for (std::size_t c = 0; c < I::channels; ++c)
        to[c] = rounded(static_cast<float>(above[c]) * w0 + static_cast<float>(above[I::channels + c]) * w1 +
                        static_cast<float>(under[c]) * w2 + static_cast<float>(under[I::channels + c]) * w3);
      return;
    }
    add(x, y, left * high), add(x + 1, y, right * high);
    add(x, y + 1, left * low), add(x + 1, y + 1, right * low);
    for (std::size_t c = 0; c < I::channels; ++c)
      to[c] = rounded(sum[c] * inside + (1 - inside) * static_cast<float>(fill_[c]));
  }
  [[nodiscard]] static value_type rounded(float x) noexcept {
    if constexpr (std::is_integral_v<value_type>)
      return static_cast<value_type>(x + 0.5f);
    else
      return static_cast<value_type>(x);
  }

  warp_matrix matrix_;
  image_size size_;
  bool bilinear_;
  std::array<value_type, I::channels> fill_;
};

/// Takes the pixels of an image from elsewhere; made by `warp`.
class warp_operation : public detail::moving_places<image_operation> {
 public:
  warp_operation(const warp_matrix& matrix, const warp_options& options)
      : matrix_(matrix), options_(options) {
    detail::check_warp("warp", options.how);
    for (const double x : {matrix.a, matrix.b, matrix.c, matrix.d, matrix.e, matrix.f})
      if (!std::isfinite(x)) throw error(errc::argument, "warp: the numbers of a matrix must be finite");
  }

  template <lazy_image I>
  [[nodiscard]] warped_image<I> operator()(const I& image, const call<image_scratch>& c) const {
    return {image, matrix_, image.size(), options_, c.scratch};
  }
  template <class Places>
  void follow(Places& places, rng& /*random*/) const {
    places.warp(matrix_, places.size());
  }
  [[nodiscard]] warp_operation for_mask(const pixel_fill& fill) const {
    return {matrix_, {interpolation::nearest, fill}};
  }

 private:
  warp_matrix matrix_;
  warp_options options_;
};

/// Takes each pixel from where a matrix says, in an image of the same size. See `rotate` and `affine`, which
/// make matrices. Pixels that come from outside the image are `fill`.
///
/// The interpolations are nearest and bilinear. As in torchvision, pixel centres are at half numbers and
/// nothing is smoothed where an image becomes smaller; `bilinear` fades to `fill` over the outermost pixel,
/// and there multiplies twice by the part that is inside. Works on images of any type. Only the bounding
/// box of what is needed is read. Cost: a pass over the result with about 10 operations a pixel for
/// nearest, 10 a value for bilinear.
///
/// Throws `errc::argument` for other interpolations, and numbers that are not finite.
///
///     const auto shifted = warp({.c = 4, .f = -2}, {.how = interpolation::bilinear, .fill = 127});
[[nodiscard]] inline warp_operation warp(const warp_matrix& matrix, const warp_options& options = {}) {
  return {matrix, options};
}

}  // namespace penstock::inline v0_1
