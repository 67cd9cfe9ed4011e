// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/image/color.hpp>

#include <penstock/core/to_size.hpp>

#include <utility>

namespace penstock::inline v0_1 {

namespace detail {

PENSTOCK_INLINE blend_tables make_blend(image_scratch& scratch, double factor) {
  float* const products = room_for<float>(scratch.tables, 512);
  fill_products(products, static_cast<float>(factor));
  fill_products(products + 256, static_cast<float>(1.0 - factor));
  return {products, products + 256};
}

PENSTOCK_INLINE void turn_hue(const std::uint8_t* from, std::uint8_t* to, float by) noexcept {
  // Each line is one operation of torchvision's, so that each result is rounded as there.
  const float r = static_cast<float>(from[0]) / 255.0f;
  const float g = static_cast<float>(from[1]) / 255.0f;
  const float b = static_cast<float>(from[2]) / 255.0f;
  const float maximum = r > g ? (r > b ? r : b) : (g > b ? g : b);
  const float least = r < g ? (r < b ? r : b) : (g < b ? g : b);
  const bool gray = maximum == least;
  const float range = maximum - least;
  const float s = rounded(range / (gray ? 1.0f : maximum));
  const float divisor = gray ? 1.0f : range;
  const float rc = rounded((maximum - r) / divisor);
  const float gc = rounded((maximum - g) / divisor);
  const float bc = rounded((maximum - b) / divisor);
  float h = maximum == r ? bc - gc : maximum == g ? 2.0f + rc - bc : 4.0f + gc - rc;
  h = rounded(h / 6.0f) + 1.0f;
  h -= static_cast<float>(static_cast<int>(h));
  h += by;
  h -= static_cast<float>(static_cast<int>(h));
  if (h < 0.0f) h += 1.0f;

  const float six = rounded(h * 6.0f);
  const int sector = static_cast<int>(six);
  const float f = six - static_cast<float>(sector);
  const float v = maximum;
  const auto clamped = [](float x) { return x < 0.0f ? 0.0f : x > 1.0f ? 1.0f : x; };
  const float p = clamped(v * (1.0f - s));
  const float q = clamped(v * (1.0f - rounded(s * f)));
  const float t = clamped(v * (1.0f - rounded(s * (1.0f - f))));
  const float red[] = {v, q, p, p, t, v}, green[] = {t, v, v, q, p, p}, blue[] = {p, p, t, v, v, q};
  const int i = sector % 6;
  to[0] = static_cast<std::uint8_t>(red[i] * 255.0f);
  to[1] = static_cast<std::uint8_t>(green[i] * 255.0f);
  to[2] = static_cast<std::uint8_t>(blue[i] * 255.0f);
}

}  // namespace detail

PENSTOCK_INLINE color_jitter_operation::color_jitter_operation(double brightness, double contrast,
                                                               double saturation, double hue)
    : ranges_{brightness, contrast, saturation, hue} {
  detail::check_range("color_jitter", "brightness", brightness, 0, 1e5);
  detail::check_range("color_jitter", "contrast", contrast, 0, 1e5);
  detail::check_range("color_jitter", "saturation", saturation, 0, 1e5);
  detail::check_range("color_jitter", "hue", hue, 0, 0.5);
}

PENSTOCK_INLINE detail::color_steps color_jitter_operation::draw_steps(rng random, bool colours) const {
  std::array<std::size_t, 4> order = {0, 1, 2, 3};
  for (std::size_t i = 3; i > 0; --i) std::swap(order[i], order[detail::to_size(random.below(i + 1))]);
  detail::color_steps steps;
  for (const std::size_t i : order) {
    const auto kind = static_cast<detail::color_step>(i);
    const bool hue = kind == detail::color_step::hue;
    const double range = ranges_[i];
    const double low = hue ? -range : range < 1 ? 1 - range : 0;
    const double factor = random.uniform(low, hue ? range : 1 + range);
    const bool changes_colour = hue || kind == detail::color_step::saturation;
    if (range > 0 && (colours || !changes_colour)) steps.all[steps.count++] = {kind, factor};
  }
  return steps;
}

}  // namespace penstock::inline v0_1
