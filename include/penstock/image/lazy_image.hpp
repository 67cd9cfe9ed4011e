// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/destination.hpp>
#include <penstock/core/element.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/image/pixels.hpp>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

/// Images that are not computed yet. An operation wraps one in another; nothing is decoded until the last
/// one knows where its pixels go, and then only the part that is needed.
namespace penstock::inline v0_1 {

/// What one operation, or one codec, keeps for one worker. The buffers keep their capacity, so that nothing
/// is allocated once they have grown.
struct image_scratch {
  buffer pixels;  ///< what `read` returns a view of, if nothing is turned
  buffer work;    ///< pixels between two passes, or turned ones
  buffer tables;  ///< weights, indexes, histograms
  buffer dense;   ///< for `finish`
};

/// Room for `count` values of type `T` in a buffer; its old content is lost.
template <class T>
[[nodiscard]] T* room_for(buffer& b, std::size_t count) {
  static_assert(std::is_trivially_copyable_v<T>,
                "penstock: a buffer has room for numbers, or other trivially copyable values");
  b.resize_for_overwrite(count * sizeof(T));
  return reinterpret_cast<T*>(b.data());
}

/// Copies pixels to a destination of shape (height, width, channels) with any strides.
template <class T, std::size_t Channels>
void copy_pixels(const pixel_view<T, Channels>& pixels, const destination<T>& into) {
  const element_strides strides = into.strides();
  if (strides[2] == 1 && strides[1] == std::int64_t{Channels}) {
    if (into.dense() && pixels.dense()) {
      if (pixels.width() != 0 && pixels.height() != 0)
        std::memcpy(into.data(), pixels.data(), pixels.height() * pixels.row_values() * sizeof(T));
      return;
    }
    for (std::size_t y = 0; y < pixels.height(); ++y)
      std::memcpy(into.data() + static_cast<std::int64_t>(y) * strides[0], pixels.row(y),
                  pixels.row_values() * sizeof(T));
    return;
  }
  for (std::size_t y = 0; y < pixels.height(); ++y) {
    const T* const from_row = pixels.row(y);
    T* const row = into.data() + static_cast<std::int64_t>(y) * strides[0];
    for (std::size_t c = 0; c < Channels; ++c) {
      T* const to = row + static_cast<std::int64_t>(c) * strides[2];
      if (strides[1] == 1) {
        for (std::size_t x = 0; x < pixels.width(); ++x) to[x] = from_row[x * Channels + c];
      } else {
        for (std::size_t x = 0; x < pixels.width(); ++x)
          to[static_cast<std::int64_t>(x) * strides[1]] = from_row[x * Channels + c];
      }
    }
  }
}

namespace detail {

/// The part of both rectangles; without width and height if there is none.
[[nodiscard]] constexpr image_part common_part(const image_part& a, const image_part& b) noexcept {
  const std::uint64_t left = std::max(a.x, b.x), top = std::max(a.y, b.y);
  const std::uint64_t right = std::min(std::uint64_t{a.x} + a.width, std::uint64_t{b.x} + b.width);
  const std::uint64_t bottom = std::min(std::uint64_t{a.y} + a.height, std::uint64_t{b.y} + b.height);
  if (left >= right || top >= bottom) return {};
  return {static_cast<std::uint32_t>(left), static_cast<std::uint32_t>(top),
          static_cast<std::uint32_t>(right - left), static_cast<std::uint32_t>(bottom - top)};
}

/// Whether pixels lie one behind the other in a destination of shape (height, width, channels).
template <std::size_t Channels, class T>
[[nodiscard]] bool interleaved(const destination<T>& into) noexcept {
  return into.strides()[2] == 1 && into.strides()[1] == std::int64_t{Channels};
}

/// Calls `write(y, row)` for each row of a part, with its place in the destination, or with `spare()` where
/// pixels do not lie one behind the other there; that row is then copied to its place.
template <std::size_t Channels, class T, class Spare, class Write>
void write_rows(const destination<T>& into, const image_part& part, const Spare& spare, const Write& write) {
  const element_strides strides = into.strides();
  T* const kept = interleaved<Channels>(into) ? nullptr : spare();
  for (std::uint32_t y = 0; y < part.height; ++y) {
    T* const row = into.data() + std::int64_t{y} * strides[0];
    write(y, kept == nullptr ? row : kept);
    if (kept == nullptr) continue;
    copy_pixels(pixel_view<T, Channels>(kept, {part.width, 1}),
                destination<T>(row, extents(1, std::size_t{part.width}, Channels), strides, into.space()));
  }
}

}  // namespace detail

/// An image that is not computed yet: an array expression of shape (height, width, channels) whose number of
/// channels is known from its type.
///   size()             width and height
///   read(part)         the pixels of a rectangle, which lies within it: a view that is valid until the next
///                      `read` or `draw`, in the worker's scratch or wherever the pixels are
///   draw(part, into)   writes the pixels of a rectangle to a destination of shape (part.height, part.width,
///                      channels), with any strides
///   memory()           a scratch that `finish` may use
/// Derive from `image_expression`, which has everything but `size`, `read` and `memory`.
template <class I>
concept lazy_image =
    placed_expression<I> && requires(const std::remove_cvref_t<I>& image, const image_part& part,
                                     const destination<typename std::remove_cvref_t<I>::value_type>& into) {
      typename std::remove_cvref_t<I>::is_lazy_image;
      { image.size() } -> std::convertible_to<image_size>;
      {
        image.read(part)
      } -> std::same_as<
          pixel_view<typename std::remove_cvref_t<I>::value_type, std::remove_cvref_t<I>::channels>>;
      image.draw(part, into);
      { image.memory() } -> std::same_as<image_scratch&>;
    };

/// A lazy image that can be had with half the sides, a quarter or an eighth, for less than all of its pixels:
///   max_halvings()        how often its sides can be halved; 0 if they cannot, or were not to be
///   halved(times, where)   the smaller image; `where` is a rectangle of this image, and becomes that of the
///                          smaller one
/// A resize that is not larger than the smaller image asks for it.
template <class I>
concept halvable_image = lazy_image<I> && requires(const I& image, real_part& where) {
  { image.max_halvings() } -> std::same_as<unsigned>;
  { image.halved(1u, where) } -> std::same_as<I>;
};

/// The base of lazy images. `Self` has `size()`, `read(part)` and `memory()`; a `draw(part, into)` of its own
/// writes pixels without keeping them first. The part is never empty in one direction only.
template <class Self, class T, std::size_t Channels>
struct image_expression {
  using unfinished = void;
  using is_lazy_image = void;
  using value_type = T;
  using view_type = pixel_view<T, Channels>;
  static constexpr std::size_t channels = Channels;

  /// (height, width, channels)
  [[nodiscard]] extents shape() const {
    const image_size size = self().size();
    return extents(std::size_t{size.height}, std::size_t{size.width}, Channels);
  }
  void write_to(const destination<T>& into) const { self().draw(whole_of(self().size()), into); }
  void draw(const image_part& part, const destination<T>& into) const {
    copy_pixels(self().read(part), into);
  }
  /// All pixels, without gaps; valid as long as the image, until its next use.
  [[nodiscard]] tensor_view<const T> finish() const {
    const image_size size = self().size();
    const view_type pixels = self().read(whole_of(size));
    if (pixels.dense()) return {pixels.data(), shape()};
    T* const dense = room_for<T>(self().memory().dense, std::size_t{size.width} * size.height * Channels);
    copy_pixels(pixels, destination<T>(dense, shape()));
    return {dense, shape()};
  }

 protected:
  /// What `draw` writes, in the scratch's `pixels`: for `read`.
  [[nodiscard]] view_type drawn(const image_part& part) const {
    T* const pixels = room_for<T>(self().memory().pixels, std::size_t{part.width} * part.height * Channels);
    self().draw(part, {pixels, extents(std::size_t{part.height}, std::size_t{part.width}, Channels)});
    return {pixels, part.size()};
  }

 private:
  [[nodiscard]] const Self& self() const noexcept { return static_cast<const Self&>(*this); }
};

/// The base of lazy images that an operation makes of another one, with the worker's scratch. They have its
/// size, unless `Self` has another.
template <class Self, lazy_image I, class T = typename I::value_type, std::size_t Channels = I::channels>
class image_over : public image_expression<Self, T, Channels> {
 public:
  image_over(I image, image_scratch& scratch) : image_(std::move(image)), scratch_(&scratch) {}

  [[nodiscard]] image_size size() const { return image_.size(); }
  [[nodiscard]] image_scratch& memory() const { return *scratch_; }

 protected:
  I image_;
  image_scratch* scratch_;
};

/// An image whose pixels stay in memory: reading a part of it is free.
template <class T, std::size_t Channels>
class shown_image : public image_expression<shown_image<T, Channels>, T, Channels> {
 public:
  explicit shown_image(const pixel_view<T, Channels>& pixels) noexcept : pixels_(pixels) {}

  [[nodiscard]] image_size size() const noexcept { return pixels_.size(); }
  [[nodiscard]] pixel_view<T, Channels> read(const image_part& part) const noexcept {
    return pixels_.part(part);
  }
  /// Of this thread; nothing is in it.
  [[nodiscard]] static image_scratch& memory() noexcept {
    thread_local image_scratch scratch;
    return scratch;
  }

 private:
  pixel_view<T, Channels> pixels_;
};

/// Owns the pixels of an image that was decoded as a whole.
template <class T, std::size_t Channels>
class kept_image {
 public:
  template <lazy_image I>
  void assign(const I& image) {
    size_ = image.size();
    pixels_.resize(std::size_t{size_.width} * size_.height * Channels);
    image.write_to(destination<T>(pixels_.data(), image.shape()));
  }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return pixels_.size() * sizeof(T); }
  [[nodiscard]] shown_image<T, Channels> shown() const noexcept {
    return shown_image<T, Channels>(pixel_view<T, Channels>(pixels_.data(), size_));
  }

 private:
  std::vector<T> pixels_;
  image_size size_;
};

/// Images are kept as their pixels, and are images again when they are shown.
template <lazy_image I>
struct kept_as<I>
    : std::type_identity<
          kept_image<typename std::remove_cvref_t<I>::value_type, std::remove_cvref_t<I>::channels>> {};

}  // namespace penstock::inline v0_1
