// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/image/erase.hpp>

namespace penstock::inline v0_1 {

/// Options of `random_erasing`, with torchvision's defaults.
struct random_erasing_options {
  double p = 0.5;  ///< the probability that anything is erased
  std::array<double, 2> scale = {0.02,
                                 0.33};  ///< the rectangle's area, least and most, as a share of the image's
  std::array<double, 2> ratio = {0.3, 3.3};  ///< its height by its width, least and most
  erase_value value = 0;                     ///< what it is painted with
};

namespace detail {

/// Throws `errc::argument`, with a sentence about the option that is wrong.
inline void check_random_erasing(const random_erasing_options& options) {
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
/// The rectangle to erase; empty if there is none.
[[nodiscard]] inline image_part draw_box_to_erase(const random_erasing_options& options,
                                                  const image_size& image, rng& random) {
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

}  // namespace detail

/// Erases a random rectangle; made by `random_erasing`.
class random_erasing_operation
    : public detail::keeping_places<image_operation, detail::draws::random_numbers> {
 public:
  explicit random_erasing_operation(const random_erasing_options& options) : options_(options) {
    detail::check_random_erasing(options_);
  }

  template <lazy_image I>
  [[nodiscard]] erased_image<I> operator()(const I& image, const call<image_scratch>& c) const {
    rng random = c.random();
    const image_part box = detail::draw_box_to_erase(options_, image.size(), random);
    return {image, {box, options_.value, options_.value.random() ? random() : 0}, c.scratch};
  }

 private:
  random_erasing_options options_;
};

/// With probability `p` paints a random rectangle of an image. Its area and the logarithm of its ratio are
/// uniform; a rectangle that is not smaller than the image in both directions is drawn again, up to ten
/// times, after which nothing is erased. torchvision: RandomErasing.
///
/// Write it where torchvision has it, after `normalize`, so that 0 is the mean; or before, on bytes, where
/// it costs less. Values are in units of the image there: see `pixel_fill` and `random_pixels`.
/// Source: Zhong et al., "Random erasing data augmentation", 2017.
///
/// Throws `errc::argument` unless `p` is from 0 to 1, the scales are from 0 to 1, the ratios are positive
/// and finite, and the first of each is not above the second.
///
///     const auto mean = random_erasing({.scale = {0.05, 0.2}, .value = {124, 116, 104}});
[[nodiscard]] inline random_erasing_operation random_erasing(const random_erasing_options& options = {}) {
  return random_erasing_operation(options);
}

}  // namespace penstock::inline v0_1
