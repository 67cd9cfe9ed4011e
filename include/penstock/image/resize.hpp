// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/random.hpp>
#include <penstock/image/operation.hpp>
#include <penstock/image/padded.hpp>
#include <penstock/image/resample.hpp>

namespace penstock::inline v0_1 {

/// How `resize` works, and how long a side may become.
struct resize_options {
  interpolation how = interpolation::bilinear;
  bool antialias = true;
  /// With a shorter side only: no side becomes longer than this, and then the shorter one becomes shorter
  /// than was asked for. 0: no limit.
  std::uint32_t max_size = 0;
};

/// A lazy image of another size. Only the part of the inner image that is needed is read, and rows are
/// written straight to their destination where its pixels are interleaved. An image that has the size
/// already is passed through. Of an image that can be had halved, as a JPEG with `dct_scaling`, the smallest
/// is taken that is not smaller than the result in either direction; what is resized is then the same
/// rectangle, to fractions of a pixel.
template <byte_image I>
class resized : public image_over<resized<I>, I> {
 public:
  /// `image` must have pixels, and `to` no side of 0.
  resized(I image, const image_size& to, interpolation how, bool antialias, image_scratch& scratch)
      : resized::image_over(std::move(image), scratch), how_{this->image_.size(), to, how, antialias} {
    if constexpr (halvable_image<I>) halve();
  }

  [[nodiscard]] image_size size() const noexcept { return how_.to; }
  [[nodiscard]] pixel_view<std::uint8_t, I::channels> read(const image_part& part) const {
    if (how_.same()) return this->image_.read(part);
    return this->drawn(part);
  }
  void draw(const image_part& part, const destination<std::uint8_t>& into) const {
    if (how_.same()) return this->image_.draw(part, into);
    resample(this->image_, how_, part, *this->scratch_, into);
  }
  /// Whether `draw_mirrored` is faster than a mirror behind this image: it costs nothing if columns are
  /// resampled anyway.
  [[nodiscard]] bool mirrors() const noexcept { return !how_.columns(whole_of(how_.to)).same(); }
  /// As `draw`, but the part's left and right change places.
  void draw_mirrored(const image_part& part, const destination<std::uint8_t>& into) const {
    resampling how = how_;
    how.mirrored = true;
    resample(this->image_, how, part, *this->scratch_, into);
  }

 private:
  /// Takes a smaller source, if there is one that is not smaller than the result.
  void halve() {
    const unsigned maximum = how_.filters_all() ? this->image_.max_halvings() : 0;
    unsigned times = 0;
    const image_size whole = how_.from;
    while (times < maximum && whole.width >> (times + 1) >= how_.to.width &&
           whole.height >> (times + 1) >= how_.to.height)
      ++times;
    if (times == 0) return;
    how_.box = {0, 0, static_cast<double>(whole.width), static_cast<double>(whole.height)};
    this->image_ = this->image_.halved(times, how_.box);
    how_.from = this->image_.size();
  }

  resampling how_;
};

namespace detail {

/// Throws `errc::shape` for an image without pixels.
inline void check_pixels(const image_size& size) {
  if (size.width == 0 || size.height == 0) [[unlikely]]
    throw error(errc::shape, {"an image of ", size.width, " x ", size.height, " has no pixels to resize"});
}

}  // namespace detail

/// What `resize(...)` makes: a function for `map`.
class resize_operation : public detail::moving_places<byte_operation> {
 public:
  /// To a size, or to a shorter side if `height` is 0.
  resize_operation(std::uint32_t height, std::uint32_t width_or_shorter, const resize_options& options)
      : height_(height), width_(width_or_shorter), options_(options) {
    if (options.max_size == 0) return;
    if (height != 0)
      throw error(errc::argument, "resize: max_size is for a shorter side; remove it, or the second size");
    if (options.max_size <= width_or_shorter)
      throw error(errc::argument, {"resize: max_size ", options.max_size,
                                   " must be larger than the shorter side, ", width_or_shorter});
  }

  template <byte_image I>
  [[nodiscard]] resized<I> operator()(const I& image, const call<image_scratch>& c) const {
    const image_size input = image.size();
    detail::check_pixels(input);
    return {image, new_size(input), options_.how, options_.antialias, c.scratch};
  }

  /// In words: "resize(256)", of the shorter side, or "resize(224, 320)".
  [[nodiscard]] std::string describe() const {
    return height_ == 0 ? "resize(" + std::to_string(width_) + ")"
                        : "resize(" + std::to_string(height_) + ", " + std::to_string(width_) + ")";
  }
  template <class Places>
  void follow(Places& places, rng& /*random*/) const {
    places.resize(new_size(places.size()));
  }
  [[nodiscard]] resize_operation for_mask(const pixel_fill& /*fill*/) const {
    resize_operation nearest = *this;
    nearest.options_.how = interpolation::nearest;
    return nearest;
  }

  /// The size that an image of this size gets. Throws `errc::limit` if a side would be longer than 2^31 - 1.
  [[nodiscard]] image_size new_size(const image_size& input) const {
    if (height_ != 0) return {width_, height_};
    const std::uint32_t shorter = std::min(input.width, input.height);
    const std::uint32_t longer = std::max(input.width, input.height);
    if (shorter == 0) return input;
    std::uint64_t new_shorter = width_, new_longer = std::uint64_t{width_} * longer / shorter;
    if (options_.max_size != 0 && new_longer > options_.max_size) {
      new_shorter = std::max<std::uint64_t>(options_.max_size * new_shorter / new_longer, 1);
      new_longer = options_.max_size;
    }
    if (new_longer > std::numeric_limits<std::int32_t>::max()) [[unlikely]]
      throw error(errc::limit,
                  {"resize to a shorter side of ", width_, " would make an image of ", input.width, " x ",
                   input.height, " ", new_longer, " pixels long; give it a max_size"});
    const auto s = static_cast<std::uint32_t>(new_shorter), l = static_cast<std::uint32_t>(new_longer);
    return input.width <= input.height ? image_size{s, l} : image_size{l, s};
  }

 private:
  std::uint32_t height_, width_;
  resize_options options_;
};

/// Resizes images so that their shorter side has this many pixels; the other one becomes
/// floor(shorter_side * longer / shorter). As torchvision's `Resize(size)`; with antialias, which is the
/// default, the bytes are Pillow's.
///
/// In: a lazy image of 8 bits, with 1, 3 or 4 channels. Out: a lazy image. Pointwise. Nothing is computed but
/// what the operations behind it need, of that part of the image.
/// Throws `errc::argument` for sizes of 0, or of more than 2^20, and for a max_size that is not larger;
/// `errc::shape`, for a sample, if it has no pixels.
///
///     auto smaller = map<"jpg">(resize(256), center_crop(224));
[[nodiscard]] inline resize_operation resize(any_count shorter_side, const resize_options& options = {}) {
  return {0, detail::side_of(shorter_side, "resize"), options};
}
/// Resizes images to this size, whatever their shape; torchvision's `Resize((height, width))`.
[[nodiscard]] inline resize_operation resize(any_count height, any_count width,
                                             const resize_options& options = {}) {
  return {detail::side_of(height, "resize"), detail::side_of(width, "resize"), options};
}

}  // namespace penstock::inline v0_1
