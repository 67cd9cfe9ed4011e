// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/image/augment.hpp>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE std::string_view to_string(augmentation what) noexcept {
  return detail::enum_name(
      {"identity", "shear_x", "shear_y", "translate_x", "translate_y", "rotate", "brightness", "color",
       "contrast", "sharpness", "posterize", "solarize", "autocontrast", "equalize"},
      what);
}

namespace detail {

namespace augmenting {

/// The greatest magnitudes of a set of operations.
struct space {
  double shear, translate_x, translate_y, degrees, factor;
  int bits;  ///< that posterize removes
};

inline void check_bins(std::string_view function, std::uint32_t bins) {
  if (bins < 2 || bins > 65'536)
    throw error(errc::argument, {function, " has from 2 to 65536 bins, and not ", bins});
}

}  // namespace augmenting

PENSTOCK_INLINE void check_augment(const trivial_augment_options& options) {
  check_warp("trivial_augment", options.how);
  augmenting::check_bins("trivial_augment", options.bins);
}

PENSTOCK_INLINE void check_augment(const rand_augment_options& options) {
  check_warp("rand_augment", options.how);
  augmenting::check_bins("rand_augment", options.bins);
  if (options.operations > augmentation_steps{}.all.size())
    throw error(errc::argument, {"rand_augment applies at most ", augmentation_steps{}.all.size(),
                                 " operations, and not ", options.operations});
  if (options.magnitude >= options.bins)
    throw error(errc::argument, {"rand_augment: the magnitude ", options.magnitude,
                                 " is not below the number of ", "bins, ", options.bins});
}

namespace augmenting {

/// Magnitude number `bin` of an operation. Source: torchvision 0.14, autoaugment.py, `_augmentation_space`.
inline augmentation_step step_of(augmentation what, const space& s, std::uint32_t bin, std::uint32_t bins,
                                 rng& random) {
  const double part = static_cast<double>(bin) / (bins - 1);
  if (what == augmentation::posterize) return {what, 8 - std::nearbyint(part * s.bits)};
  if (what == augmentation::solarize) return {what, 255 - 255 * part};
  // of the operations from identity to sharpness, in the order of the enum; the others have none
  const std::array maxima{0.0,       s.shear,  s.shear,  s.translate_x, s.translate_y,
                          s.degrees, s.factor, s.factor, s.factor,      s.factor};
  const auto number = static_cast<std::size_t>(what);
  if (number == 0 || number >= maxima.size()) return {what, 0};
  const double maximum = maxima[number];
  const bool negative = random.below(2) == 1;
  return {what, negative ? -maximum * part : maximum * part};
}

inline augmentation draw_operation(rng& random) {
  return static_cast<augmentation>(random.below(augmentation_count));
}

}  // namespace augmenting

PENSTOCK_INLINE augmentation_steps draw(const trivial_augment_options& options, const image_size&,
                                        rng random) {
  constexpr augmenting::space wide{0.99, 32, 32, 135, 0.99, 6};
  const augmentation what = augmenting::draw_operation(random);
  const auto bin = static_cast<std::uint32_t>(random.below(options.bins));
  augmentation_steps steps;
  steps.all[steps.count++] = augmenting::step_of(what, wide, bin, options.bins, random);
  return steps;
}

PENSTOCK_INLINE augmentation_steps draw(const rand_augment_options& options, const image_size& size,
                                        rng random) {
  const augmenting::space space{0.3, 150.0 / 331 * size.width, 150.0 / 331 * size.height, 30, 0.9, 4};
  augmentation_steps steps;
  for (std::uint32_t i = 0; i < options.operations; ++i) {
    const augmentation what = augmenting::draw_operation(random);
    steps.all[steps.count++] = augmenting::step_of(what, space, options.magnitude, options.bins, random);
  }
  return steps;
}

PENSTOCK_INLINE warp_matrix matrix_of(const augmentation_step& step, const image_size& size) {
  const double slope = std::atan(step.magnitude) * 180 / std::numbers::pi;
  const image_point corner{-0.5 * size.width, -0.5 * size.height};
  switch (step.what) {
    case augmentation::shear_x:
      return penstock::matrix_of({.shear = {slope, 0}, .center = corner});
    case augmentation::shear_y:
      return penstock::matrix_of({.shear = {0, slope}, .center = corner});
    case augmentation::translate_x:
      return penstock::matrix_of({.translate = {std::trunc(step.magnitude), 0}});
    case augmentation::translate_y:
      return penstock::matrix_of({.translate = {0, std::trunc(step.magnitude)}});
    case augmentation::rotate:
      return penstock::matrix_of({.degrees = -step.magnitude});
    default:
      return {};
  }
}

}  // namespace detail

}  // namespace penstock::inline v0_1
