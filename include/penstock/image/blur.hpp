// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/image/detail/row_image.hpp>

#include <algorithm>
#include <cmath>

/// Operations that blend a pixel with its neighbours: gaussian_blur and sharpness. Alpha, the last of four
/// channels, stays as it is.
namespace penstock::inline v0_1 {

namespace detail {

/// A position along one axis, mirrored at the outermost pixels as often as it takes to lie in the image.
[[nodiscard]] constexpr std::size_t mirrored(std::int64_t at, std::size_t length) noexcept {
  if (length <= 1) return 0;
  const auto period = static_cast<std::int64_t>(2 * (length - 1));
  at = (at % period + period) % period;
  return static_cast<std::size_t>(std::min(at, period - at));
}

/// A rectangle and `margin` pixels around it, as far as the image goes.
[[nodiscard]] constexpr image_part with_margin(const image_part& part, const image_size& size,
                                               std::uint32_t margin) noexcept {
  const std::uint32_t x = part.x - std::min(part.x, margin), y = part.y - std::min(part.y, margin);
  const std::uint32_t right = size.width - part.x - part.width, below = size.height - part.y - part.height;
  return {x, y, part.x - x + part.width + std::min(right, margin),
          part.y - y + part.height + std::min(below, margin)};
}

/// Weights of a bell of `kernel` taps, as whole numbers whose sum is 2^14.
inline void fill_bell(std::int16_t* weights, std::size_t kernel, double sigma) {
  const double middle = static_cast<double>(kernel - 1) / 2;
  const auto bell = [&](std::size_t i) {
    const double x = (static_cast<double>(i) - middle) / sigma;
    return std::exp(-0.5 * x * x);
  };
  double sum = 0;
  for (std::size_t i = 0; i < kernel; ++i) sum += bell(i);
  int rest = 1 << 14;
  for (std::size_t i = 0; i < kernel; ++i) {
    weights[i] = static_cast<std::int16_t>(std::lround(bell(i) / sum * (1 << 14)));
    rest -= weights[i];
  }
  // What rounding left goes to the middle ones, one by one, so that no weight is far from its own.
  const int one = rest < 0 ? -1 : 1;
  for (std::size_t i = 0; rest != 0; ++i, rest -= one) {
    const std::size_t away = (i % kernel + 1) / 2;
    const std::size_t at = i % 2 == 0 ? kernel / 2 - away : kernel / 2 + away;
    weights[at] = static_cast<std::int16_t>(weights[at] + one);
  }
}

inline constexpr std::size_t blur_block = 32;

/// The sum of `kernel` values, each `step` behind the one before it, times their weights; of `blocks` times
/// 32 values side by side. From bytes to 128ths.
inline void blur_row(const std::int16_t* __restrict from, std::int16_t* __restrict to, std::size_t blocks,
                     std::size_t step, const std::int16_t* __restrict weights, std::size_t kernel) noexcept {
  for (std::size_t b = 0; b < blocks; ++b, from += blur_block, to += blur_block) {
    std::int32_t sums[blur_block];
    for (std::size_t i = 0; i < blur_block; ++i) sums[i] = 64;
    for (std::size_t k = 0; k < kernel; ++k) {
      const std::int16_t* const at = from + k * step;
      const std::int16_t weight = weights[k];
      for (std::size_t i = 0; i < blur_block; ++i) sums[i] += std::int32_t{at[i]} * weight;
    }
    for (std::size_t i = 0; i < blur_block; ++i) to[i] = static_cast<std::int16_t>(sums[i] >> 7);
  }
}

/// Weighted sums as those of `blur_row`, of values below each other: from `kernel` rows of 128ths to bytes.
inline void blur_column(const std::int16_t* const* rows, std::uint8_t* __restrict to, std::size_t blocks,
                        const std::int16_t* __restrict weights, std::size_t kernel) noexcept {
  for (std::size_t b = 0; b < blocks; ++b, to += blur_block) {
    std::int32_t sums[blur_block];
    for (std::size_t i = 0; i < blur_block; ++i) sums[i] = 1 << 20;
    for (std::size_t k = 0; k < kernel; ++k) {
      const std::int16_t* const at = rows[k] + b * blur_block;
      const std::int16_t weight = weights[k];
      for (std::size_t i = 0; i < blur_block; ++i) sums[i] += std::int32_t{at[i]} * weight;
    }
    for (std::size_t i = 0; i < blur_block; ++i) to[i] = static_cast<std::uint8_t>(sums[i] >> 21);
  }
}

template <byte_image I>
class blurred_image : public image_over<blurred_image<I>, I> {
 public:
  using typename blurred_image::image_expression::view_type;

  blurred_image(const I& image, std::uint32_t kernel, double sigma, image_scratch& scratch)
      : blurred_image::image_over(image, scratch), kernel_(kernel) {
    fill_bell(room_for<std::int16_t>(scratch.tables, kernel), kernel, sigma);
  }

  [[nodiscard]] view_type read(const image_part& part) const {
    const image_size all = this->image_.size();
    const std::uint32_t half_kernel = kernel_ / 2;
    const image_part wide = with_margin(part, all, half_kernel);
    const view_type from = this->image_.read(wide);
    const auto* const weights = reinterpret_cast<const std::int16_t*>(this->scratch_->tables.data());

    const std::size_t blocks = (part.width * I::channels + blur_block - 1) / blur_block;
    const std::size_t row = blocks * blur_block, padded = row + (kernel_ - 1) * I::channels;
    // Kept: a row with its margins, all rows blurred along the row, pointers to those under the kernel.
    const std::size_t values = padded + row * wide.height;
    const std::size_t before = (values * sizeof(std::int16_t) + 15) / 16 * 16;
    std::byte* const work =
        room_for<std::byte>(this->scratch_->work, before + kernel_ * sizeof(std::int16_t*));
    auto* const line = reinterpret_cast<std::int16_t*>(work);
    std::int16_t* const blurred = line + padded;
    auto* const under = reinterpret_cast<const std::int16_t**>(work + before);
    std::fill_n(line, padded, std::int16_t{0});
    for (std::size_t y = 0; y < wide.height; ++y) {
      fill_line(line, from.row(y), part, wide, all.width, half_kernel);
      blur_row(line, blurred + y * row, blocks, I::channels, weights, kernel_);
    }

    std::uint8_t* const to = room_for<std::uint8_t>(this->scratch_->pixels, row * part.height);
    for (std::size_t y = 0; y < part.height; ++y) {
      for (std::size_t k = 0; k < kernel_; ++k) {
        const std::int64_t at = std::int64_t{part.y} + static_cast<std::int64_t>(y + k) - half_kernel;
        under[k] = blurred + (mirrored(at, all.height) - wide.y) * row;
      }
      std::uint8_t* const out = to + y * row;
      blur_column(under, out, blocks, weights, kernel_);
      if constexpr (I::channels == 4) {
        const std::uint8_t* const own = from.at(part.x - wide.x, part.y - wide.y + y);
        for (std::size_t x = 0; x < part.width; ++x) out[4 * x + 3] = own[4 * x + 3];
      }
    }
    return {to, part.size(), row};
  }

 private:
  /// The pixels of a row that the kernel needs; what is beyond the image is mirrored.
  static void fill_line(std::int16_t* line, const std::uint8_t* from, const image_part& part,
                        const image_part& wide, std::uint32_t width, std::uint32_t half_kernel) {
    const std::size_t count = part.width + 2 * std::size_t{half_kernel};
    const std::int64_t first = std::int64_t{part.x} - half_kernel;
    const auto copy = [&](std::size_t i) {
      const std::size_t x = mirrored(first + static_cast<std::int64_t>(i), width) - wide.x;
      for (std::size_t c = 0; c < I::channels; ++c) line[i * I::channels + c] = from[x * I::channels + c];
    };
    const auto left = static_cast<std::size_t>(std::int64_t{wide.x} - first);
    for (std::size_t i = 0; i < left; ++i) copy(i);
    for (std::size_t i = 0; i < wide.width * I::channels; ++i) line[left * I::channels + i] = from[i];
    for (std::size_t i = left + wide.width; i < count; ++i) copy(i);
  }

  std::uint32_t kernel_;
};

template <byte_image I>
class sharpened_image : public image_over<sharpened_image<I>, I> {
 public:
  using typename sharpened_image::image_expression::view_type;

  sharpened_image(const I& image, double factor, image_scratch& scratch, bool changes)
      : sharpened_image::image_over(image, scratch), factor_(factor), changes_(changes) {}

  [[nodiscard]] view_type read(const image_part& part) const {
    const image_size all = this->image_.size();
    if (!changes_ || all.width <= 2 || all.height <= 2) return this->image_.read(part);
    const image_part wide = with_margin(part, all, 1);
    const view_type from = this->image_.read(wide);
    const blend_tables blend = make_blend(*this->scratch_, factor_);
    const std::size_t row = part.width * I::channels;
    std::uint8_t* const to = room_for<std::uint8_t>(this->scratch_->pixels, row * part.height);
    for (std::uint32_t y = 0; y < part.height; ++y)
      for (std::uint32_t x = 0; x < part.width; ++x) {
        const std::uint32_t image_x = part.x + x, image_y = part.y + y;
        const bool edge =
            image_x == 0 || image_y == 0 || image_x + 1 == all.width || image_y + 1 == all.height;
        const std::uint8_t* const own = from.at(image_x - wide.x, image_y - wide.y);
        std::uint8_t* const out = to + y * row + x * I::channels;
        for (std::size_t c = 0; c < colours_of<I::channels>; ++c) {
          const std::uint8_t soft = edge ? own[c] : softened(own + c, from.pitch());
          out[c] = blend(own[c], soft);
        }
        if constexpr (I::channels == 4) out[3] = own[3];
      }
    return {to, part.size()};
  }

 private:
  /// The mean of a value, which counts five times, and the eight around it. Source: torchvision 0.14,
  /// functional_tensor.py, `_blurred_degenerate_image`. A 13th part is never halfway between two numbers.
  [[nodiscard]] static std::uint8_t softened(const std::uint8_t* value, std::size_t pitch) noexcept {
    unsigned sum = 5u * *value;
    const std::uint8_t* const above = value - pitch;
    const std::uint8_t* const below = value + pitch;
    for (const std::uint8_t* const row : {above, below})
      sum += unsigned{*(row - I::channels)} + *row + *(row + I::channels);
    sum += unsigned{*(value - I::channels)} + *(value + I::channels);
    return static_cast<std::uint8_t>((2 * sum + 13) / 26);
  }

  double factor_;
  bool changes_;
};

}  // namespace detail

class gaussian_blur_operation : public detail::keeping_places<byte_operation, detail::draws::random_numbers> {
 public:
  gaussian_blur_operation(int kernel, double lowest, double highest)
      : kernel_(static_cast<std::uint32_t>(kernel)), lowest_(lowest), highest_(highest) {
    if (kernel < 1 || kernel > 1023 || kernel % 2 == 0)
      throw error(errc::argument, {"gaussian_blur: the kernel is ", kernel,
                                   " pixels wide; pass an odd number from 1 to 1023"});
    detail::check_range("gaussian_blur", "the lowest deviation", lowest, 0.01, 1e4);
    detail::check_range("gaussian_blur", "the highest deviation", highest, lowest, 1e4);
  }
  template <byte_image I>
  [[nodiscard]] detail::blurred_image<I> operator()(const I& image, const call<image_scratch>& c) const {
    return {image, kernel_, c.random().uniform(lowest_, highest_), c.scratch};
  }

 private:
  std::uint32_t kernel_;
  double lowest_, highest_;
};

namespace detail {

/// Sharpens every image, or each with a probability.
template <draws Drawn>
class sharpening : public keeping_places<byte_operation, Drawn> {
 public:
  explicit sharpening(double factor, double p = 1) : factor_(factor), p_(p) {
    constexpr const char* name = is_random ? "random_sharpness" : "sharpness";
    check_range(name, "the factor", factor, 0, 1e6);
    check_range(name, "the probability", p, 0, 1);
  }
  template <byte_image I>
  [[nodiscard]] sharpened_image<I> operator()(const I& image, const call<image_scratch>& c) const {
    return {image, factor_, c.scratch, !is_random || c.random().chance(p_)};
  }

 private:
  static constexpr bool is_random = Drawn == draws::random_numbers;

  double factor_, p_;
};

}  // namespace detail

/// Sharpens every image; made by `sharpness`.
using sharpness_operation = detail::sharpening<detail::draws::nothing>;
/// Sharpens each image with a probability; made by `random_sharpness`.
using random_sharpness_operation = detail::sharpening<detail::draws::random_numbers>;

/// Blurs with a Gaussian bell of `kernel` x `kernel` pixels, whose standard deviation, in pixels, is drawn
/// from `lowest` to `highest`. Beyond the edges the image is mirrored, the outermost pixels only once; again
/// and again where the kernel is larger than the image, which torchvision refuses. torchvision:
/// `GaussianBlur`, within 1.
///
/// Throws `errc::argument` unless the kernel is an odd number from 1 to 1023, and the deviations are from
/// 0.01 to 1e4, the lower one first. Cost: two passes of `kernel` products per value, of whole numbers, which
/// both compilers turn into vector code: equal bytes on every processor, if the C library's `exp` is equal.
///
///     const auto stronger = gaussian_blur(23, 1.0, 3.0);
[[nodiscard]] inline gaussian_blur_operation gaussian_blur(int kernel, double lowest = 0.1,
                                                           double highest = 2.0) {
  return {kernel, lowest, highest};
}

/// Away from a softened image, or towards it: 0 is softened, 1 the image, 2 twice as sharp. Images of up to
/// two rows or columns stay as they are. torchvision: `functional.adjust_sharpness`, the same bytes. Throws
/// `errc::argument` unless the factor is from 0 to 1e6.
///
///     const auto sharper = sharpness(2.0);
[[nodiscard]] inline sharpness_operation sharpness(double factor) { return sharpness_operation(factor); }
/// `sharpness` with probability `p`. torchvision: `RandomAdjustSharpness`.
[[nodiscard]] inline random_sharpness_operation random_sharpness(double factor, double p = 0.5) {
  return random_sharpness_operation(factor, p);
}

namespace detail {

// Blocks of a known length and sums of products of 16 bits: what GCC 12 and Clang 16 make vector code of at
// -O2.

}  // namespace detail

}  // namespace penstock::inline v0_1
