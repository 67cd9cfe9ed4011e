// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/image/blur.hpp>
#include <penstock/image/color.hpp>
#include <penstock/image/warp.hpp>

/// Random choices among operations on images: trivial_augment, rand_augment.
namespace penstock::inline v0_1 {

/// The operations that `trivial_augment` and `rand_augment` choose from, in torchvision's order.
enum class augmentation : std::uint8_t {
  identity,
  shear_x,
  shear_y,
  translate_x,
  translate_y,
  rotate,
  brightness,
  color,
  contrast,
  sharpness,
  posterize,
  solarize,
  autocontrast,
  equalize
};
inline constexpr std::size_t augmentation_count = 14;

/// The name of an operation, spelled as in the enum.
[[nodiscard]] std::string_view to_string(augmentation what) noexcept;

/// An operation that was chosen, with torchvision's magnitude for it: a slope, pixels, degrees, what is
/// added to a factor of 1, bits, or a threshold.
struct augmentation_step {
  augmentation what = augmentation::identity;
  double magnitude = 0;
  friend constexpr bool operator==(const augmentation_step&, const augmentation_step&) = default;
};

/// Options of `trivial_augment`, with torchvision's defaults.
struct trivial_augment_options {
  std::uint32_t bins = 31;                     ///< how many magnitudes there are, at least 2
  interpolation how = interpolation::nearest;  ///< of shears, moves and turns; or bilinear
  pixel_fill fill = 0;                         ///< what they bring in from outside the image
};

/// Options of `rand_augment`, with torchvision's defaults.
struct rand_augment_options {
  std::uint32_t operations = 2;                ///< how many, one after another; at most 8
  std::uint32_t magnitude = 9;                 ///< the number of the magnitude, from 0, below `bins`
  std::uint32_t bins = 31;                     ///< how many magnitudes there are, at least 2
  interpolation how = interpolation::nearest;  ///< of shears, moves and turns; or bilinear
  pixel_fill fill = 0;                         ///< what they bring in from outside the image
};

/// What these operations keep for one worker.
struct augment_scratch {
  image_scratch image;  ///< pixels before and after an operation
  image_scratch step;   ///< of the operation
};

namespace detail {

struct augmentation_steps {
  std::array<augmentation_step, 8> all{};
  std::size_t count = 0;
};

void check_augment(const trivial_augment_options& options);

void check_augment(const rand_augment_options& options);

[[nodiscard]] augmentation_steps draw(const trivial_augment_options& options, const image_size&, rng random);

[[nodiscard]] augmentation_steps draw(const rand_augment_options& options, const image_size& size,
                                      rng random);

[[nodiscard]] warp_matrix matrix_of(const augmentation_step& step, const image_size& size);

/// Calls `use` with the lazy image that a step makes of pixels, which are in memory so that all steps have
/// one type, whatever image they begin with.
template <std::size_t Channels, class Use>
void use_augmented(const augmentation_step& step, const warp_options& warping,
                   const shown_image<std::uint8_t, Channels>& image, image_scratch& scratch, Use&& use) {
  using source = shown_image<std::uint8_t, Channels>;
  const auto look_up = [&]<class Table>(const Table& table) {
    use(lookup_image<source, Table>(image, table, scratch, true));
  };
  switch (step.what) {
    case augmentation::identity:
      return use(image);
    case augmentation::shear_x:
    case augmentation::shear_y:
    case augmentation::translate_x:
    case augmentation::translate_y:
    case augmentation::rotate:
      return use(warped_image<source>(image, matrix_of(step, image.size()), image.size(), warping, scratch));
    case augmentation::brightness:
      return look_up(brightness_table{1 + step.magnitude});
    case augmentation::color:
      if constexpr (Channels >= 3)
        return use(recoloured_image<source, saturation_change>(image, 1 + step.magnitude, scratch));
      else
        return use(image);
    case augmentation::contrast:
      return look_up(contrast_table{1 + step.magnitude});
    case augmentation::sharpness:
      return use(sharpened_image<source>(image, 1 + step.magnitude, scratch, true));
    case augmentation::posterize:
      return look_up(posterize_table{static_cast<int>(step.magnitude)});
    case augmentation::solarize:
      return look_up(solarize_table{step.magnitude});
    case augmentation::autocontrast:
      return look_up(autocontrast_table{});
    case augmentation::equalize:
      return look_up(equalize_table{});
  }
}

}  // namespace detail

/// An image to which chosen operations are applied; made by `trivial_augment` and `rand_augment`. Reads all
/// of the image below, even for a part of the result.
template <byte_image I>
class augmented_image : public image_expression<augmented_image<I>, std::uint8_t, I::channels> {
 public:
  using view_type = pixel_view<std::uint8_t, I::channels>;
  static constexpr std::size_t channels = I::channels;

  augmented_image(I image, const detail::augmentation_steps& steps, const warp_options& warping,
                  augment_scratch& scratch)
      : image_(std::move(image)), warping_(warping), scratch_(&scratch) {
    for (std::size_t i = 0; i < steps.count; ++i)
      if (steps.all[i].what != augmentation::identity) steps_.all[steps_.count++] = steps.all[i];
    static_cast<void>(warping.fill.template as<std::uint8_t, channels>());  // refused here, for all samples
  }

  [[nodiscard]] image_size size() const { return image_.size(); }
  [[nodiscard]] image_scratch& memory() const { return scratch_->image; }
  [[nodiscard]] view_type read(const image_part& part) const {
    if (steps_.count == 0 || part.width == 0 || part.height == 0) return image_.read(part);
    const std::size_t row = std::size_t{part.width} * channels;
    view_type made;
    with_last([&](const auto& last) {
      // the one of the two buffers that the last step does not read
      std::uint8_t* const own = room_for<std::uint8_t>(buffer_of(steps_.count - 1), row * part.height);
      last.draw(part, destination<std::uint8_t>(own, extents(part.height, part.width, channels)));
      made = view_type(own, part.size());
    });
    return made;
  }
  void draw(const image_part& part, const destination<std::uint8_t>& into) const {
    if (steps_.count == 0 || part.width == 0 || part.height == 0) return image_.draw(part, into);
    with_last([&](const auto& last) { last.draw(part, into); });
  }

 private:
  [[nodiscard]] buffer& buffer_of(std::size_t step) const noexcept {
    return step % 2 == 0 ? scratch_->image.pixels : scratch_->image.work;
  }
  /// Computes all steps but the last, and calls `use` with that one.
  template <class Use>
  void with_last(Use&& use) const {
    const image_size size = image_.size();
    const extents shape(size.height, size.width, channels);
    view_type pixels = image_.read(whole_of(size));
    for (std::size_t i = 0; i + 1 < steps_.count; ++i) {
      std::uint8_t* const own =
          room_for<std::uint8_t>(buffer_of(i), std::size_t{size.width} * size.height * channels);
      apply(i, pixels,
            [&](const auto& made) { made.draw(whole_of(size), destination<std::uint8_t>(own, shape)); });
      pixels = view_type(own, size);
    }
    apply(steps_.count - 1, pixels, use);
  }
  template <class Use>
  void apply(std::size_t step, const view_type& pixels, Use&& use) const {
    detail::use_augmented<channels>(steps_.all[step], warping_, shown_image<std::uint8_t, channels>(pixels),
                                    scratch_->step, use);
  }

  I image_;
  detail::augmentation_steps steps_;
  warp_options warping_;
  augment_scratch* scratch_;
};

/// Applies random operations: one, made by `trivial_augment`, or several, made by `rand_augment`.
template <class Options>
class augment_operation : public byte_operation {
 public:
  using scratch = augment_scratch;
  template <class>
  static constexpr bool uses_random = true;

  explicit augment_operation(const Options& options) : options_(options) { detail::check_augment(options); }
  template <byte_image I>
  [[nodiscard]] augmented_image<I> operator()(const I& image, const call<augment_scratch>& c) const {
    return {
        image, detail::draw(options_, image.size(), c.random()), {options_.how, options_.fill}, c.scratch};
  }

 private:
  Options options_;
};
using trivial_augment_operation = augment_operation<trivial_augment_options>;
using rand_augment_operation = augment_operation<rand_augment_options>;

/// One operation of fourteen at random, with a random magnitude. torchvision: TrivialAugmentWide, with its
/// operations, ranges and order; its draws are different.
/// Source: Mueller and Hutter, "TrivialAugment: tuning-free yet state-of-the-art data augmentation", 2021.
///
/// For images of bytes, of any number of channels: `color` leaves gray images as they are. Write it after
/// the crop, since it computes all of its image. Cost: one pass over the image, two for contrast,
/// autocontrast and equalize; no allocation once the buffers have grown. Bilinear fades to `fill` at the
/// border: see `warp`.
///
/// Throws `errc::argument` for fewer than 2 bins or more than 65536, and for other interpolations than
/// nearest and bilinear.
///
///     const auto augment = trivial_augment();
[[nodiscard]] inline trivial_augment_operation trivial_augment(const trivial_augment_options& options = {}) {
  return trivial_augment_operation(options);
}

/// Several of the operations of `trivial_augment`, one after another, each with the same number of a
/// magnitude, from ranges that are narrower. torchvision: RandAugment, with its operations, ranges and
/// order; its draws are different.
/// Source: Cubuk et al., "RandAugment: practical automated data augmentation with a reduced search space",
/// 2019.
///
/// Throws `errc::argument` as `trivial_augment`, for more than 8 operations, and for a magnitude that is
/// not below `bins`.
///
///     const auto augment = rand_augment({.operations = 2, .magnitude = 9});
[[nodiscard]] inline rand_augment_operation rand_augment(const rand_augment_options& options = {}) {
  return rand_augment_operation(options);
}

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/image/augment.ipp>
#endif
