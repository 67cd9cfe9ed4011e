// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/random.hpp>
#include <penstock/image/warp.hpp>

namespace penstock::inline v0_1 {

/// Options of `rotate` and `rotate_by`, with torchvision's defaults.
struct rotate_options {
  interpolation how = interpolation::nearest;  ///< or bilinear
  bool expand = false;                         ///< make the image large enough for all of it
  pixel_fill fill = 0;                         ///< what is outside the image
};

/// Options of `affine`. Each range is the least and the most.
struct affine_options {
  std::array<double, 2> degrees{};    ///< clockwise
  std::array<double, 2> translate{};  ///< at most so much of the width, of the height, in both directions
  std::array<double, 2> scale{1, 1};  ///< above 0
  std::array<double, 2> shear{};      ///< of x, in degrees
  std::array<double, 2> shear_y{};    ///< of y, in degrees
  interpolation how = interpolation::nearest;  ///< or bilinear
  pixel_fill fill = 0;                         ///< what is outside the image
};

namespace detail {

inline void check_degrees(std::string_view function, const std::array<double, 2>& degrees) {
  if (!(degrees[0] <= degrees[1] && std::isfinite(degrees[0]) && std::isfinite(degrees[1])))
    throw error(errc::argument, {function, ": angles are finite, the least first, as in {-30, 30}"});
}
inline void check_affine(const affine_options& options) {
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
/// Drawn in torchvision's order: angle, translation (whole pixels), scale, shears.
[[nodiscard]] inline affine_change draw_affine(const affine_options& options, const image_size& size,
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

}  // namespace detail

/// Turns images by an angle, or by a random one of a range; made by `rotate` and `rotate_by`.
template <bool Random>
class rotate_operation : public detail::moving_places<image_operation, Random ? detail::draws::random_numbers
                                                                              : detail::draws::nothing> {
 public:
  rotate_operation(const std::array<double, 2>& degrees, const rotate_options& options)
      : degrees_(degrees), options_(options) {
    detail::check_degrees(Random ? "rotate" : "rotate_by", degrees);
    detail::check_warp(Random ? "rotate" : "rotate_by", options.how);
  }

  template <lazy_image I>
  [[nodiscard]] warped_image<I> operator()(const I& image, const call<image_scratch>& c) const {
    rng random = c.random();
    const warp_matrix matrix = choose(random);
    return {image, matrix, new_size(matrix, image.size()), warp_options{options_.how, options_.fill},
            c.scratch};
  }

  template <class Places>
  void follow(Places& places, rng& random) const {
    const warp_matrix matrix = choose(random);
    places.warp(matrix, new_size(matrix, places.size()));
  }
  [[nodiscard]] rotate_operation for_mask(const pixel_fill& fill) const {
    return {degrees_, {interpolation::nearest, options_.expand, fill}};
  }
  /// Where pixels come from; depends on the random numbers only.
  [[nodiscard]] warp_matrix choose([[maybe_unused]] rng& random) const {
    if constexpr (Random)
      return matrix_of({.degrees = -random.uniform(degrees_[0], degrees_[1])});
    else
      return matrix_of({.degrees = -degrees_[0]});
  }
  /// The size of a turned image, given that of the image.
  [[nodiscard]] image_size new_size(const warp_matrix& matrix, const image_size& size) const {
    return options_.expand ? expanded_size(matrix, size) : size;
  }

 private:
  std::array<double, 2> degrees_;
  rotate_options options_;
};

/// Moves, turns, scales and shears images as drawn; made by `affine`.
class affine_operation : public detail::moving_places<image_operation, detail::draws::random_numbers> {
 public:
  explicit affine_operation(const affine_options& options) : options_(options) {
    detail::check_affine(options);
  }
  template <lazy_image I>
  [[nodiscard]] warped_image<I> operator()(const I& image, const call<image_scratch>& c) const {
    rng random = c.random();
    const image_size size = image.size();
    return {image, choose(size, random), size, warp_options{options_.how, options_.fill}, c.scratch};
  }

  template <class Places>
  void follow(Places& places, rng& random) const {
    places.warp(choose(places.size(), random), places.size());
  }
  [[nodiscard]] affine_operation for_mask(const pixel_fill& fill) const {
    affine_options nearest = options_;
    nearest.how = interpolation::nearest;
    nearest.fill = fill;
    return affine_operation(nearest);
  }

  /// Where pixels come from; depends on the size and the random numbers only.
  [[nodiscard]] warp_matrix choose(const image_size& size, rng& random) const {
    return matrix_of(detail::draw_affine(options_, size, random));
  }

 private:
  affine_options options_;
};

/// Turns each image around its centre by a random angle from a range, in degrees, counter-clockwise.
/// torchvision: RandomRotation. What comes from outside the image is `fill`; with `expand` the image grows
/// so that nothing of it is lost. See `warp` for interpolation and cost, and write `key("...")` to turn a
/// mask with its image.
///
/// Throws `errc::argument` unless the range is of finite numbers, the least first, and for other
/// interpolations than nearest and bilinear.
///
///     const auto turn = rotate({-30, 30}, {.how = interpolation::bilinear});
[[nodiscard]] inline rotate_operation<true> rotate(const std::array<double, 2>& degrees,
                                                   const rotate_options& options = {}) {
  return {degrees, options};
}

/// Turns every image by this angle in degrees, counter-clockwise; as `rotate`. torchvision:
/// functional.rotate. A quarter turn moves whole pixels if both sides are even or both odd; otherwise, with
/// `expand` too, pixels fall between others, as in torchvision.
///
///     const auto quarter = rotate_by(90, {.expand = true});
[[nodiscard]] inline rotate_operation<false> rotate_by(double degrees, const rotate_options& options = {}) {
  return {{degrees, degrees}, options};
}

/// Turns (clockwise), moves, scales and shears each image at random; the centre stays but for the move.
/// torchvision: RandomAffine. See `warp` for interpolation, `fill` and cost.
///
/// Throws `errc::argument` unless all ranges are of finite numbers, the least first; shares of the size are
/// from 0 to 1, scales positive, and shears between -90 and 90.
///
///     const auto some = affine({.degrees = {-10, 10}, .translate = {0.1, 0.1}, .scale = {0.9, 1.1}});
[[nodiscard]] inline affine_operation affine(const affine_options& options) {
  return affine_operation(options);
}

/// Changes every image alike: see `affine_change`. torchvision: functional.affine.
///
///     const auto twice = affine_by({.scale = 2}, {.how = interpolation::bilinear});
[[nodiscard]] inline warp_operation affine_by(const affine_change& change, const warp_options& options = {}) {
  detail::check_warp("affine_by", options.how);
  return {matrix_of(change), options};
}

}  // namespace penstock::inline v0_1
