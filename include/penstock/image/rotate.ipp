// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/image/rotate.hpp>

#include <cmath>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE void check_degrees(std::string_view function, const std::array<double, 2>& degrees) {
  if (!(degrees[0] <= degrees[1] && std::isfinite(degrees[0]) && std::isfinite(degrees[1])))
    throw error(errc::argument, {function, ": angles are finite, the least first, as in {-30, 30}"});
}

PENSTOCK_INLINE void check_affine(const affine_options& options) {
  check_warp("affine", options.how);
  check_degrees("affine", options.degrees);
  for (const double share : options.translate)
    if (!(share >= 0 && share <= 1))
      throw error(errc::argument,
                  "affine: translate is the most share of the width and of the height, from 0 to 1");
  const std::array<double, 2>& scale = options.scale;
  if (!(scale[0] > 0 && std::isfinite(1 / scale[0]) && scale[0] <= scale[1] && std::isfinite(scale[1])))
    throw error(errc::argument,
                "affine: scale is the least and the most, above 0, as in .scale = {0.9, 1.1}");
  for (const auto& shear : {options.shear, options.shear_y})
    if (!(shear[0] > -90 && shear[0] <= shear[1] && shear[1] < 90))
      throw error(errc::argument, "affine: a shear is the least and the most, between -90 and 90 degrees");
}

PENSTOCK_INLINE affine_change draw_affine(const affine_options& options, const image_size& size,
                                          rng& random) {
  const auto draw = [&](const std::array<double, 2>& range) { return random.uniform(range[0], range[1]); };
  affine_change made;
  made.degrees = draw(options.degrees);
  const double max_x = options.translate[0] * size.width, max_y = options.translate[1] * size.height;
  made.translate.x = std::nearbyint(random.uniform(-max_x, max_x));
  made.translate.y = std::nearbyint(random.uniform(-max_y, max_y));
  made.scale = draw(options.scale);
  made.shear[0] = draw(options.shear);
  made.shear[1] = draw(options.shear_y);
  return made;
}

}  // namespace penstock::inline v0_1::detail
