// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/image/crop.hpp>
#include <penstock/image/resize.hpp>

namespace penstock::inline v0_1 {

/// A range of real numbers, from which one is drawn.
struct real_range {
  double min = 0;
  double max = 1;
};

/// Which rectangles `random_resized_crop` takes, and how it resizes them.
struct random_resized_crop_options {
  real_range scale = {0.08, 1};           ///< the share of the image's area
  real_range ratio = {3.0 / 4, 4.0 / 3};  ///< width / height; drawn from its logarithms
  interpolation how = interpolation::bilinear;
  bool antialias = true;
};

/// What `random_resized_crop(...)` makes: a function for `map`.
class random_resized_crop_operation
    : public detail::moving_places<byte_operation, detail::draws::random_numbers> {
 public:
  random_resized_crop_operation(const image_size& size, const random_resized_crop_options& options)
      : size_(size), options_(options) {
    check(options.scale, "scale");
    check(options.ratio, "ratio");
    if (options.scale.max > 1)
      throw error(errc::argument,
                  "random_resized_crop: a scale above 1; it is the share of the image's area");
  }

  template <byte_image I>
  [[nodiscard]] resized<cropped<I>> operator()(const I& image, const call<image_scratch>& c) const {
    detail::check_pixels(image.size());
    rng random = c.random();
    return {cropped<I>(image, choose(image.size(), random), c.scratch), size_, options_.how,
            options_.antialias, c.scratch};
  }

  [[nodiscard]] std::string describe() const { return "random_resized_crop" + detail::sides_text(size_); }
  template <class Places>
  void follow(Places& places, rng& random) const {
    detail::check_pixels(places.size());
    places.crop(choose(places.size(), random)).resize(size_);
  }
  [[nodiscard]] random_resized_crop_operation for_mask(const pixel_fill& /*fill*/) const {
    random_resized_crop_operation nearest = *this;
    nearest.options_.how = interpolation::nearest;
    return nearest;
  }

  /// The rectangle of an image of this size, which has pixels. It depends on the size and the random numbers
  /// only.
  [[nodiscard]] image_part choose(const image_size& input, rng& random) const {
    const double area = static_cast<double>(input.width) * input.height;
    const double min = std::log(options_.ratio.min), max = std::log(options_.ratio.max);
    for (int attempt = 0; attempt < 10; ++attempt) {
      const double wanted = area * random.uniform(options_.scale.min, options_.scale.max);
      const double ratio = std::exp(random.uniform(min, max));
      const double w = std::nearbyint(std::sqrt(wanted * ratio)),
                   h = std::nearbyint(std::sqrt(wanted / ratio));
      if (w >= 1 && w <= input.width && h >= 1 && h <= input.height) {
        const auto width = static_cast<std::uint32_t>(w), height = static_cast<std::uint32_t>(h);
        const auto y = static_cast<std::uint32_t>(random.below(std::uint64_t{input.height} - height + 1));
        const auto x = static_cast<std::uint32_t>(random.below(std::uint64_t{input.width} - width + 1));
        return {x, y, width, height};
      }
    }
    return middle(input);
  }

 private:
  static void check(const real_range& range, const char* name) {
    if (!(range.min > 0) || !(range.max >= range.min) || std::isinf(range.max))
      throw error(errc::argument, {"random_resized_crop: ", name,
                                   " is from a number above 0 to one that is not smaller, as in {0.5, 1}"});
  }
  /// The largest rectangle in the middle whose ratio is allowed.
  [[nodiscard]] image_part middle(const image_size& input) const {
    const double ratio = static_cast<double>(input.width) / input.height;
    const auto side = [](double length, std::uint32_t max) {
      return static_cast<std::uint32_t>(std::clamp(std::nearbyint(length), 1.0, static_cast<double>(max)));
    };
    std::uint32_t w = input.width, h = input.height;
    if (ratio < options_.ratio.min)
      h = side(w / options_.ratio.min, input.height);
    else if (ratio > options_.ratio.max)
      w = side(h * options_.ratio.max, input.width);
    return {(input.width - w) / 2, (input.height - h) / 2, w, h};
  }

  image_size size_;
  random_resized_crop_options options_;
};

/// A rectangle of random size, shape and place, resized to this size. torchvision's `RandomResizedCrop`, with
/// its algorithm: up to ten tries to find a rectangle that lies in the image, then one in the middle.
///
/// In: a lazy image of 8 bits, with 1, 3 or 4 channels. Out: a lazy image, of which only the rectangle is
/// ever read: with a codec that decodes parts, the rest is not decoded. Pointwise; draws random numbers. With
/// one `key`, images of one size get the same rectangle, whatever their interpolation.
/// Throws `errc::argument` for sizes of 0, or of more than 2^20, and for ranges that are not above 0;
/// `errc::shape`, for a sample, if it has no pixels.
///
///     auto large = map<"jpg">(random_resized_crop(224, {.scale = {0.25, 1}}), key("crop"));
[[nodiscard]] inline random_resized_crop_operation random_resized_crop(
    any_count height, any_count width, const random_resized_crop_options& options = {}) {
  return {{detail::side_of(width, "random_resized_crop"), detail::side_of(height, "random_resized_crop")},
          options};
}
[[nodiscard]] inline random_resized_crop_operation random_resized_crop(
    any_count size, const random_resized_crop_options& options = {}) {
  return random_resized_crop(size, size, options);
}

}  // namespace penstock::inline v0_1
