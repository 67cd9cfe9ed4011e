// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/image/pad.hpp>

namespace penstock::inline v0_1 {

/// A rectangle of a lazy image. Reads and draws that rectangle of the inner image: costs nothing by itself.
template <lazy_image I>
class cropped : public image_over<cropped<I>, I> {
 public:
  /// `part` lies within the image.
  cropped(I image, const image_part& part, image_scratch& scratch)
      : cropped::image_over(std::move(image), scratch), part_(part) {}

  [[nodiscard]] image_size size() const noexcept { return part_.size(); }
  [[nodiscard]] pixel_view<typename I::value_type, I::channels> read(const image_part& part) const {
    return this->image_.read(shifted(part));
  }
  void draw(const image_part& part, const destination<typename I::value_type>& into) const {
    this->image_.draw(shifted(part), into);
  }
  [[nodiscard]] unsigned max_halvings() const
    requires halvable_image<I>
  {
    return this->image_.max_halvings();
  }
  /// The rectangle may end within pixels of the smaller image, which then are all there.
  [[nodiscard]] cropped halved(unsigned times, real_part& where) const
    requires halvable_image<I>
  {
    real_part all{static_cast<double>(part_.x), static_cast<double>(part_.y),
                  static_cast<double>(part_.width), static_cast<double>(part_.height)};
    const double x = where.x, y = where.y;
    I smaller = this->image_.halved(times, all);
    const double scale = 1.0 / (1u << times);
    const auto first = [](double at) { return static_cast<std::uint32_t>(at); };
    const auto last = [](double at, std::uint32_t maximum) {
      return std::min(maximum, static_cast<std::uint32_t>(std::ceil(at)));
    };
    const image_size size = smaller.size();
    const std::uint32_t left = first(all.x), top = first(all.y);
    const image_part part{left, top, last(all.x + all.width, size.width) - left,
                          last(all.y + all.height, size.height) - top};
    where = {all.x - left + x * scale, all.y - top + y * scale, where.width * scale, where.height * scale};
    return {std::move(smaller), part, this->memory()};
  }

 private:
  [[nodiscard]] image_part shifted(const image_part& part) const noexcept {
    return {part_.x + part.x, part_.y + part.y, part.width, part.height};
  }

  image_part part_;
};

namespace detail {

/// Half of a number, rounded to the nearest integer, and to the even one of two: Python's `round(n / 2.0)`.
[[nodiscard]] constexpr std::uint64_t half_to_even(std::uint64_t n) noexcept {
  const std::uint64_t half = n / 2;
  return n % 2 == 1 && half % 2 == 1 ? half + 1 : half;
}
/// Where the middle `wanted` pixels of `n` begin, by torchvision's rules; below 0 if there are fewer.
[[nodiscard]] constexpr std::int64_t centre_of(std::uint32_t n, std::uint32_t wanted) noexcept {
  if (wanted > n) return -static_cast<std::int64_t>((wanted - n) / 2);
  return static_cast<std::int64_t>(half_to_even(n - wanted));
}
[[noreturn, gnu::cold]] inline void refuse_crop(const image_size& wanted, const image_size& found,
                                                const char* advice) {
  throw error(errc::shape, {"a crop of ", wanted.width, " x ", wanted.height, " from an image of ",
                            found.width, " x ", found.height, "; ", advice});
}

}  // namespace detail

/// What `crop(...)` makes: a function for `map`.
class crop_operation : public detail::moving_places<image_operation> {
 public:
  explicit crop_operation(const image_part& part) : part_(part) {}

  template <lazy_image I>
  [[nodiscard]] cropped<I> operator()(const I& image, const call<image_scratch>& c) const {
    if (const image_size input = image.size(); !part_.within(input)) [[unlikely]]
      throw error(errc::shape, {"a crop of ", part_.width, " x ", part_.height, " at (", part_.x, ", ",
                                part_.y, ") from an image of ", input.width, " x ", input.height,
                                "; resize or pad the image first"});
    return {image, part_, c.scratch};
  }
  template <class Places>
  void follow(Places& places, rng& /*random*/) const {
    places.crop(part_);
  }

 private:
  image_part part_;
};

/// What `center_crop(...)` makes: a function for `map`.
class center_crop_operation : public detail::framing<center_crop_operation> {
 public:
  explicit center_crop_operation(const image_size& size) : size_(size) {}

  [[nodiscard]] const image_size& size() const noexcept { return size_; }
  [[nodiscard]] std::string describe() const { return "center_crop" + detail::sides_text(size_); }

  [[nodiscard]] std::pair<std::int64_t, std::int64_t> choose(const image_size& input,
                                                             rng& /*random*/) const noexcept {
    return {detail::centre_of(input.width, size_.width), detail::centre_of(input.height, size_.height)};
  }
  [[nodiscard]] image_size new_size(const image_size& /*input*/) const noexcept { return size_; }
  [[nodiscard]] bool may_fill(const image_size& input) const noexcept {
    return size_.width > input.width || size_.height > input.height;
  }

 private:
  image_size size_;
};

/// What `random_crop` does before it crops.
struct random_crop_options {
  image_padding padding = {};  ///< pixels that are added on the sides first
  bool pad_if_needed = false;  ///< an image that is too small is padded on both sides by what it lacks
  pixel_fill fill = 0;         ///< for `padding_mode::constant`
  padding_mode mode = padding_mode::constant;
};

/// What `random_crop(...)` makes: a function for `map`.
class random_crop_operation : public detail::framing<random_crop_operation, detail::draws::random_numbers> {
 public:
  random_crop_operation(const image_size& size, const random_crop_options& options)
      : framing(options.fill, options.mode),
        size_(size),
        padding_(options.padding),
        pad_if_needed_(options.pad_if_needed) {}

  [[nodiscard]] const image_size& size() const noexcept { return size_; }
  [[nodiscard]] std::string describe() const { return "random_crop" + detail::sides_text(size_); }

  /// The upper left corner of the rectangle, in the plane of an image of this size; below 0 where it is in
  /// the padding. It depends on the size and the random numbers only.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> choose(const image_size& input, rng& random) const {
    std::uint64_t left = padding_.left, top = padding_.top;
    std::uint64_t width = left + input.width + padding_.right;
    std::uint64_t height = top + input.height + padding_.bottom;
    if (pad_if_needed_) {
      add_missing(left, width, size_.width);
      add_missing(top, height, size_.height);
    }
    if (width < size_.width || height < size_.height) [[unlikely]]
      detail::refuse_crop(size_, input,
                          "write random_crop(size, {.pad_if_needed = true}), or resize it first");
    const std::uint64_t y = random.below(height - size_.height + 1);
    const std::uint64_t x = random.below(width - size_.width + 1);
    return {static_cast<std::int64_t>(x) - static_cast<std::int64_t>(left),
            static_cast<std::int64_t>(y) - static_cast<std::int64_t>(top)};
  }

  [[nodiscard]] image_size new_size(const image_size& /*input*/) const noexcept { return size_; }
  [[nodiscard]] bool may_fill(const image_size& input) const noexcept {
    return padding_.left != 0 || padding_.top != 0 || padding_.right != 0 || padding_.bottom != 0 ||
           size_.width > input.width || size_.height > input.height;
  }

 private:
  static void add_missing(std::uint64_t& before, std::uint64_t& length, std::uint64_t wanted) noexcept {
    if (length >= wanted) return;
    const std::uint64_t missing = wanted - length;
    before += missing;
    length += 2 * missing;
  }

  image_size size_;
  image_padding padding_;
  bool pad_if_needed_;
};

/// The rectangle of this size whose upper left corner is (x, y). torchvision's `functional.crop`, which fills
/// what is beyond the image, where this throws `errc::shape` for the sample.
///
/// In: a lazy image of any kind. Out: a lazy image, of which only the rectangle is ever read. Pointwise.
/// Throws `errc::argument` if a number is negative, a side is 0, or one is larger than 2^20.
///
///     auto corner = map<"jpg">(crop(0, 0, 64, 48));  // x, y, width, height
[[nodiscard]] inline crop_operation crop(any_count x, any_count y, any_count width, any_count height) {
  return crop_operation({detail::side_of(x, "crop", 0), detail::side_of(y, "crop", 0),
                         detail::side_of(width, "crop"), detail::side_of(height, "crop")});
}

/// The middle of images. Smaller images are padded with 0. torchvision's `CenterCrop`, whose rounding it has:
/// an odd pixel is left away where Python's `round` says.
///
/// In: a lazy image of any kind. Out: a lazy image, of which only the middle is ever read. Pointwise.
/// Throws `errc::argument` for sizes of 0, or of more than 2^20.
///
///     auto wide = map<"jpg">(center_crop(224, 448));  // height, width
[[nodiscard]] inline center_crop_operation center_crop(any_count height, any_count width) {
  return center_crop_operation(
      {detail::side_of(width, "center_crop"), detail::side_of(height, "center_crop")});
}
[[nodiscard]] inline center_crop_operation center_crop(any_count size) { return center_crop(size, size); }

/// A rectangle of this size from anywhere in an image. torchvision's `RandomCrop`, with its order: `padding`
/// first, then `pad_if_needed`. Where both add pixels of the image, they are added at once.
///
/// In: a lazy image of any kind. Out: a lazy image, of which only the rectangle is ever read. Pointwise;
/// draws two random numbers. With one `key`, images of one size get the same rectangle.
/// Throws `errc::argument` for sizes of 0, or of more than 2^20; `errc::shape`, for a sample, if the image is
/// smaller than the rectangle, and not padded.
///
///     auto mask = map<"png">(random_crop(224, {.pad_if_needed = true, .fill = 255}), key("crop"));
[[nodiscard]] inline random_crop_operation random_crop(any_count height, any_count width,
                                                       const random_crop_options& options = {}) {
  return {{detail::side_of(width, "random_crop"), detail::side_of(height, "random_crop")}, options};
}
[[nodiscard]] inline random_crop_operation random_crop(any_count size,
                                                       const random_crop_options& options = {}) {
  return random_crop(size, size, options);
}

}  // namespace penstock::inline v0_1
