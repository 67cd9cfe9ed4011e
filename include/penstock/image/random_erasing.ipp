// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/image/random_erasing.hpp>

#include <cmath>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE void check_random_erasing(const random_erasing_options& options) {
  if (!(options.p >= 0 && options.p <= 1))
    throw error(errc::argument, "random_erasing: p is a probability, from 0 to 1");
  if (!(options.scale[0] >= 0 && options.scale[0] <= options.scale[1] && options.scale[1] <= 1))
    throw error(
        errc::argument,
        "random_erasing: scale is the least and the most share of the image's area, from 0 to 1, as in "
        ".scale = {0.02, 0.33}");
  if (!(options.ratio[0] > 0 && options.ratio[0] <= options.ratio[1] && std::isfinite(options.ratio[1])))
    throw error(errc::argument,
                "random_erasing: ratio is the least and the most height by width, above 0, as in "
                ".ratio = {0.3, 3.3}");
}

PENSTOCK_INLINE image_part draw_box_to_erase(const random_erasing_options& options, const image_size& image,
                                             rng& random) {
  if (!random.chance(options.p)) return {};
  const double area = static_cast<double>(image.width) * image.height;
  const double low = std::log(options.ratio[0]), high = std::log(options.ratio[1]);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double erased = area * random.uniform(options.scale[0], options.scale[1]);
    const double ratio = std::exp(random.uniform(low, high));
    const double height = std::nearbyint(std::sqrt(erased * ratio));
    const double width = std::nearbyint(std::sqrt(erased / ratio));
    if (!(height < image.height && width < image.width)) continue;
    image_part box{0, 0, static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height)};
    box.y = static_cast<std::uint32_t>(random.below(std::uint64_t{image.height} - box.height + 1));
    box.x = static_cast<std::uint32_t>(random.below(std::uint64_t{image.width} - box.width + 1));
    return box;
  }
  return {};
}

}  // namespace penstock::inline v0_1::detail
