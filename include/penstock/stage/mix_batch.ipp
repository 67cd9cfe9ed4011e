// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/stage/mix_batch.hpp>

#include <cmath>
#include <limits>
#include <numbers>

namespace penstock::inline v0_1::detail {

namespace mixing {

/// A normally distributed number. Source: Box and Muller, "A note on the generation of random normal
/// deviates", 1958.
PENSTOCK_INLINE double draw_normal(rng& random) {
  const double u = 1 - random.uniform();  // in (0, 1]
  const double angle = 2 * std::numbers::pi * random.uniform();
  return std::sqrt(-2 * std::log(u)) * std::cos(angle);
}

/// The logarithm of a draw from Gamma(alpha, 1); the draw itself may be too small for a number.
/// Source: Marsaglia and Tsang, "A simple method for generating gamma variables", 2000, with their step for
/// alpha < 1.
PENSTOCK_INLINE double draw_log_gamma(rng& random, double alpha) {
  const double boosted = alpha < 1 ? alpha + 1 : alpha;
  const double d = boosted - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  double v = 0;
  while (true) {
    const double x = draw_normal(random);
    const double root = 1 + c * x;
    const double u = 1 - random.uniform();
    if (root <= 0) continue;
    v = root * root * root;
    if (std::log(u) < x * x / 2 + d - d * v + d * std::log(v)) break;
  }
  const double log_gamma = std::log(d * v);
  return alpha < 1 ? log_gamma + std::log(1 - random.uniform()) / alpha : log_gamma;
}

}  // namespace mixing

PENSTOCK_INLINE double draw_beta(rng& random, double alpha) {
  const double a = mixing::draw_log_gamma(random, alpha), b = mixing::draw_log_gamma(random, alpha);
  return 1 / (1 + std::exp(b - a));
}

PENSTOCK_INLINE std::size_t check_mixing(std::string_view function, any_count classes, double alpha) {
  const std::uint64_t count = classes.of(function);
  if (count == 0 || count > std::numeric_limits<std::uint32_t>::max())
    throw error(errc::argument, {function, " needs the number of classes, at least 1, and not ", count});
  if (!(alpha >= 1e-6 && alpha <= 1e6))  // beyond that the logarithms of a share's parts overflow
    throw error(errc::argument, {function, ": alpha must be from 1e-6 to 1e6, as in .alpha = 0.2"});
  return to_size(count);
}

PENSTOCK_INLINE void refuse_label(std::string_view function, std::size_t slot, std::size_t classes) {
  throw error(errc::shape, {"the label in slot ", slot, " of the batch is no class of ", function, "(",
                            classes, "), whose classes are 0 to ", classes - 1});
}

PENSTOCK_INLINE void refuse_soft_labels(std::string_view function, const extents& shape,
                                        std::size_t classes) {
  throw error(errc::shape, {function, "(", classes, ") gets labels of shape ", to_string(shape),
                            "; they must be integers, or shares of shape (n, ", classes, ")"});
}

PENSTOCK_INLINE cut_box draw_cut_box(const extents& batch, bool channels_first, rng& random, double& share) {
  if (batch.rank() != 4)
    throw error(errc::shape, {"cutmix gets images of shape ", to_string(batch),
                              "; it needs (n, channels, height, width), or (n, height, width, channels) with "
                              ".channels_first = false"});
  const std::uint64_t first = batch[1], last = batch[3];
  const std::uint64_t channels = channels_first ? first : last, side = channels_first ? last : first;
  if (channels > 4 && side <= 4)
    throw error(errc::shape, {"cutmix gets images of shape ", to_string(batch), ", where channels are ",
                              channels_first ? "last; write cutmix(classes, {.channels_first = false})"
                                             : "first; leave out .channels_first = false"});
  const std::uint64_t height = batch[channels_first ? 2 : 1], width = batch[channels_first ? 3 : 2];
  if (height == 0 || width == 0) return {};
  const double half = 0.5 * std::sqrt(1 - share);
  const std::uint64_t x = random.below(width), y = random.below(height);
  const auto half_width = static_cast<std::uint64_t>(half * static_cast<double>(width));
  const auto half_height = static_cast<std::uint64_t>(half * static_cast<double>(height));
  const std::uint64_t left = x - std::min(x, half_width), right = std::min(x + half_width, width);
  const std::uint64_t top = y - std::min(y, half_height), bottom = std::min(y + half_height, height);
  share = 1 - static_cast<double>((right - left) * (bottom - top)) /
                  (static_cast<double>(width) * static_cast<double>(height));
  return {to_size(left), to_size(top), to_size(right - left), to_size(bottom - top)};
}

}  // namespace penstock::inline v0_1::detail
