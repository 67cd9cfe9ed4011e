// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/to_size.hpp>
#include <penstock/image/crop.hpp>
#include <penstock/image/resize.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace penstock::inline v0_1 {

/// Which sizes `aspect_buckets` has.
struct aspect_options {
  std::uint32_t step = 64;     ///< sides are multiples of it
  std::uint32_t min_side = 0;  ///< 0: half the side of a square of the area
  std::uint32_t max_side = 0;  ///< 0: twice that side
};

/// What `packed_size` is: a function of a size, and one for `map`.
struct packed_size_operation : image_operation {
  [[nodiscard]] constexpr std::uint64_t operator()(const image_size& size) const noexcept {
    return std::uint64_t{size.width} << 32 | size.height;
  }
  template <lazy_image I>
  [[nodiscard]] std::uint64_t operator()(const I& image, const call<image_scratch>& /*c*/) const {
    return (*this)(image.size());
  }
};

/// An image's size in one number, which `derive` can keep: the width in the high half, the height in the low
/// one. `map<"jpg">(packed_size)` decodes no pixel.
inline constexpr packed_size_operation packed_size{};

/// Sizes of about equal area and different shapes, and which of them an image gets: the one whose ratio of
/// width to height is nearest to its own. `bucket_by` makes batches of images of one size, `resize(buckets)`
/// gives each its size, and so they stack without padding.
///
/// `aspect_buckets(area)` has, for each width that is a multiple of `step`, the largest height that is one
/// and does not exceed the area, and the same with width and height changed: the buckets of NovelAI's and
/// kohya's trainers. Or give the sizes; of those of one shape the largest counts.
///
/// A `bucketing` of `image_size` and of `packed_size`, which `derive` keeps; a sample counts as the pixels of
/// its bucket.
/// Throws `errc::argument` if there is no such size, for a side of 0 or of more than 2^20, and for more than
/// 255 sizes; `errc::shape` for an image without pixels.
///
///     const aspect_buckets buckets(512 * 512);
///     const auto size_of = [](std::uint64_t i) { return i % 2 == 0 ? image_size{640, 480} : image_size{480, 640}; };
///     auto stage = map<"jpg">(resize(buckets));
///     auto cut = bucket_by(size_of, buckets, {.max_samples = 32});
class aspect_buckets {
 public:
  explicit aspect_buckets(any_count area, const aspect_options& options = {});
  explicit aspect_buckets(std::vector<image_size> sizes);

  [[nodiscard]] std::uint64_t size() const noexcept { return sizes_.size(); }
  /// The sizes, from the tallest to the widest.
  [[nodiscard]] const std::vector<image_size>& sizes() const noexcept { return sizes_; }
  [[nodiscard]] std::uint64_t bucket_of(const image_size& image) const {
    detail::check_pixels(image);
    return static_cast<std::uint64_t>(std::upper_bound(ends_.begin(), ends_.end(), ratio_of(image)) -
                                      ends_.begin());
  }
  [[nodiscard]] std::uint64_t bucket_of(std::uint64_t packed) const {
    return bucket_of(
        image_size{static_cast<std::uint32_t>(packed >> 32), static_cast<std::uint32_t>(packed)});
  }
  /// The size that an image of this size gets.
  [[nodiscard]] const image_size& size_for(const image_size& image) const {
    return sizes_[detail::to_size(bucket_of(image))];
  }
  /// The pixels of a bucket's images.
  [[nodiscard]] std::uint64_t length(std::uint64_t bucket) const noexcept {
    const image_size& size = sizes_[detail::to_size(bucket)];
    return std::uint64_t{size.width} * size.height;
  }

  [[nodiscard]] std::string describe() const;
  void fingerprint(auto& h) const {
    h.add("aspect_buckets", sizes_.size());
    for (const image_size& size : sizes_) h.add(size.width, size.height);
  }

 private:
  [[nodiscard]] static double ratio_of(const image_size& size) noexcept {
    return static_cast<double>(size.width) / size.height;
  }
  void set(std::vector<image_size> sizes);

  std::vector<image_size> sizes_;
  std::vector<double> ends_;  // between the ratios of neighbours
};

inline aspect_buckets::aspect_buckets(std::vector<image_size> sizes) {
  for (const image_size& size : sizes) {
    (void)detail::side_of(size.width, "aspect_buckets");
    (void)detail::side_of(size.height, "aspect_buckets");
  }
  set(std::move(sizes));
}

inline aspect_buckets::aspect_buckets(any_count area, const aspect_options& options) {
  const std::uint64_t pixels = area.of("aspect_buckets");
  const std::uint64_t step = detail::side_of(options.step, "aspect_buckets");
  const auto side = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(pixels)));
  const std::uint64_t least = options.min_side != 0 ? options.min_side : side / 2;
  const std::uint64_t most =
      detail::side_of(options.max_side != 0 ? options.max_side : 2 * side, "aspect_buckets");
  std::vector<image_size> sizes;
  const auto add = [&](std::uint64_t width, std::uint64_t height) {
    if (width >= least && height >= least && width != 0 && height != 0)
      sizes.push_back({static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height)});
  };
  add(side / step * step, side / step * step);
  for (std::uint64_t width = (least + step - 1) / step * step; width <= most; width += step) {
    if (width == 0) continue;
    const std::uint64_t height = std::min(most, pixels / width) / step * step;
    add(width, height);
    add(height, width);
  }
  set(std::move(sizes));
}

inline void aspect_buckets::set(std::vector<image_size> sizes) {
  // by shape; of one shape the largest first
  std::sort(sizes.begin(), sizes.end(), [](const image_size& a, const image_size& b) {
    const std::uint64_t left = std::uint64_t{a.width} * b.height, right = std::uint64_t{b.width} * a.height;
    return left != right ? left < right : a.width > b.width;
  });
  const auto same_shape = [](const image_size& a, const image_size& b) {
    return std::uint64_t{a.width} * b.height == std::uint64_t{b.width} * a.height;
  };
  sizes.erase(std::unique(sizes.begin(), sizes.end(), same_shape), sizes.end());
  if (sizes.empty() || sizes.size() > 255)
    throw error(errc::argument, {"aspect_buckets has 1 to 255 sizes, not ", sizes.size(),
                                 sizes.empty() ? "; give it a larger area or a smaller step"
                                               : "; give it fewer, or a larger step"})
        .in_stage("aspect_buckets");
  sizes_ = std::move(sizes);
  for (std::size_t i = 1; i < sizes_.size(); ++i)
    ends_.push_back((ratio_of(sizes_[i - 1]) + ratio_of(sizes_[i])) / 2);
}

inline std::string aspect_buckets::describe() const {
  const auto text = [](const image_size& s) {
    return std::to_string(s.width) + " x " + std::to_string(s.height);
  };
  return std::to_string(sizes_.size()) + " sizes from " + text(sizes_.front()) + " to " + text(sizes_.back());
}

/// How `resize(buckets)` works.
struct bucket_resize_options {
  interpolation how = interpolation::bilinear;
  bool antialias = true;
};

/// What `resize(buckets)` makes: a function for `map`.
class bucket_resize_operation : public detail::moving_places<byte_operation> {
 public:
  bucket_resize_operation(aspect_buckets buckets, const bucket_resize_options& options)
      : buckets_(std::move(buckets)), options_(options) {}

  template <byte_image I>
  [[nodiscard]] cropped<resized<I>> operator()(const I& image, const call<image_scratch>& c) const {
    const image_size input = image.size(), &to = buckets_.size_for(input), covering = cover(input, to);
    return {resized<I>(image, covering, options_.how, options_.antialias, c.scratch), middle(covering, to),
            c.scratch};
  }

  [[nodiscard]] std::string describe() const { return "resize(" + buckets_.describe() + ")"; }
  template <class Places>
  void follow(Places& places, rng& /*random*/) const {
    const image_size input = places.size(), &to = buckets_.size_for(input), covering = cover(input, to);
    places.resize(covering);
    places.crop(middle(covering, to));
  }
  [[nodiscard]] bucket_resize_operation for_mask(const pixel_fill& /*fill*/) const {
    bucket_resize_operation nearest = *this;
    nearest.options_.how = interpolation::nearest;
    return nearest;
  }

 private:
  /// The smallest size of the input's shape that is not smaller than another in either direction.
  [[nodiscard]] static image_size cover(const image_size& input, const image_size& to) {
    const std::uint64_t w = input.width, h = input.height;
    const bool wider = w * to.height > std::uint64_t{to.width} * h;
    const auto scaled = [](std::uint64_t length, std::uint64_t wanted, std::uint64_t by) {
      return (2 * length * wanted + by) / (2 * by);
    };
    const std::uint64_t longer = wider ? scaled(w, to.height, h) : scaled(h, to.width, w);
    if (longer > std::numeric_limits<std::int32_t>::max()) [[unlikely]]
      throw error(errc::limit, {"to cover ", to.width, " x ", to.height, ", an image of ", w, " x ", h,
                                " would become ", longer, " pixels long; leave it out"});
    const auto side = static_cast<std::uint32_t>(longer);
    return wider ? image_size{side, to.height} : image_size{to.width, side};
  }
  [[nodiscard]] static image_part middle(const image_size& covering, const image_size& to) noexcept {
    return {static_cast<std::uint32_t>(detail::centre_of(covering.width, to.width)),
            static_cast<std::uint32_t>(detail::centre_of(covering.height, to.height)), to.width, to.height};
  }

  aspect_buckets buckets_;
  bucket_resize_options options_;
};

/// Resizes each image so that it covers the size of its bucket, and crops the middle.
///
/// In: a lazy image of 8 bits, with 1, 3 or 4 channels. Out: a lazy image. Pointwise. Nothing is computed
/// outside the middle.
/// Throws `errc::shape`, for a sample, if it has no pixels.
///
///     auto cut = map<"jpg">(resize(aspect_buckets(512 * 512), {.how = interpolation::bicubic}));
[[nodiscard]] inline bucket_resize_operation resize(const aspect_buckets& buckets,
                                                    const bucket_resize_options& options = {}) {
  return {buckets, options};
}

}  // namespace penstock::inline v0_1
