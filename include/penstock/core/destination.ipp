// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/destination.hpp>

#include <penstock/core/error.hpp>

namespace penstock::inline v0_1::detail {

/// One dimension of two arrays: its length, and the distance in bytes between neighbours in each array.
struct copied_length {
  std::uint64_t length = 1;
  std::int64_t into = 0, from = 0;
};

/// The dimensions of two arrays, sorted by decreasing stride in the destination; elements may be copied in
/// any order.
struct copied_lengths {
  copied_length all[extents::max_rank];
  std::size_t count = 0;

  static constexpr std::int64_t apart(std::int64_t step) noexcept { return step < 0 ? -step : step; }
  void add(const copied_length& one) noexcept {
    std::size_t i = count++;
    for (; i > 0 && apart(all[i - 1].into) < apart(one.into); --i) all[i] = all[i - 1];
    all[i] = one;
  }
  /// Merges dimensions that follow each other in both arrays without gaps.
  void merge() noexcept {
    std::size_t kept = 0;
    for (std::size_t i = 1; i < count; ++i) {
      const auto length = static_cast<std::int64_t>(all[i].length);
      if (all[kept].into == all[i].into * length && all[kept].from == all[i].from * length)
        all[kept] = {all[kept].length * all[i].length, all[i].into, all[i].from};
      else
        all[++kept] = all[i];
    }
    if (count != 0) count = kept + 1;
  }
  /// Moves the dimension with the smallest source stride, other than the last, to second-to-last place.
  void turn_to_source() noexcept {
    if (count < 2) return;
    std::size_t nearest = count - 2;
    for (std::size_t i = nearest; i-- > 0;)
      if (apart(all[i].from) < apart(all[nearest].from)) nearest = i;
    const copied_length one = all[nearest];
    for (; nearest < count - 2; ++nearest) all[nearest] = all[nearest + 1];
    all[nearest] = one;
  }
  /// Calls `f(into, from)` for each index combination of all dimensions but the last `inner`.
  void walk(std::size_t inner, std::byte* into, const std::byte* from, auto f) const {
    std::uint64_t at[extents::max_rank] = {};
    while (true) {
      f(into, from);
      std::size_t i = count - inner;
      while (true) {
        if (i == 0) return;
        --i;
        into += all[i].into;
        from += all[i].from;
        if (++at[i] < all[i].length) break;
        const auto length = static_cast<std::int64_t>(all[i].length);
        into -= all[i].into * length;
        from -= all[i].from * length;
        at[i] = 0;
      }
    }
  }
};

/// Splits pixels into planes: copies `Channels` adjacent elements of each pixel to one plane each.
template <std::size_t Size, std::size_t Channels>
void copy_channels(std::byte* into, std::int64_t plane, const std::byte* from, std::int64_t pixel,
                   std::uint64_t pixels) noexcept {
  for (std::uint64_t i = 0; i < pixels; ++i, into += Size, from += pixel)
    for (std::size_t c = 0; c < Channels; ++c)
      std::memcpy(into + static_cast<std::int64_t>(c) * plane, from + c * Size, Size);
}
template <std::size_t Size>
void copy_channels(std::byte* into, std::int64_t plane, const std::byte* from, std::int64_t pixel,
                   std::uint64_t pixels, std::uint64_t channels) noexcept {
  constexpr auto step = static_cast<std::int64_t>(Size);
  for (; channels > 4; channels -= 4, into += 4 * plane, from += 4 * step)
    copy_channels<Size, 4>(into, plane, from, pixel, pixels);
  if (channels == 4)  // compilers optimise better if they know that this is the whole pixel
    pixel == 4 * step ? copy_channels<Size, 4>(into, plane, from, 4 * step, pixels)
                      : copy_channels<Size, 4>(into, plane, from, pixel, pixels);
  else if (channels == 3)
    pixel == 3 * step ? copy_channels<Size, 3>(into, plane, from, 3 * step, pixels)
                      : copy_channels<Size, 3>(into, plane, from, pixel, pixels);
  else if (channels == 2)
    copy_channels<Size, 2>(into, plane, from, pixel, pixels);
  else
    copy_channels<Size, 1>(into, plane, from, pixel, pixels);
}

/// Copies elements of `Size` bytes (of `size` bytes if `Size` is 0) along two dimensions.
template <std::size_t Size>
void copy_plane(std::byte* into, const std::byte* from, const copied_length& outer,
                const copied_length& inner, std::size_t size) noexcept {
  constexpr std::uint64_t high = 16, wide = 256;  // what one block reads stays in the nearest cache
  constexpr auto step = static_cast<std::int64_t>(Size);
  const bool pixels = Size != 0 && inner.into == step && outer.from == step;
  for (std::uint64_t top = 0; top < outer.length; top += high)
    for (std::uint64_t left = 0; left < inner.length; left += wide) {
      const std::uint64_t rows = outer.length - top < high ? outer.length - top : high;
      const std::uint64_t columns = inner.length - left < wide ? inner.length - left : wide;
      const auto y = static_cast<std::int64_t>(top), x = static_cast<std::int64_t>(left);
      std::byte* to = into + y * outer.into + x * inner.into;
      const std::byte* at = from + y * outer.from + x * inner.from;
      if constexpr (Size != 0) {
        if (pixels) {
          copy_channels<Size>(to, outer.into, at, inner.from, columns, rows);
          continue;
        }
      }
      for (std::uint64_t i = 0; i < rows; ++i, to += outer.into, at += outer.from) {
        std::byte* one = to;
        const std::byte* other = at;
        for (std::uint64_t k = 0; k < columns; ++k, one += inner.into, other += inner.from)
          std::memcpy(one, other, Size != 0 ? Size : size);
      }
    }
}

PENSTOCK_INLINE void copy_strided(std::byte* into, const element_strides& into_strides, const std::byte* from,
                                  const element_strides& from_strides, const extents& shape,
                                  std::size_t element_bytes) noexcept {
  const auto step = static_cast<std::int64_t>(element_bytes);
  copied_lengths lengths;
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    if (shape[i] == 0) return;
    if (shape[i] != 1) lengths.add({shape[i], into_strides[i] * step, from_strides[i] * step});
  }
  lengths.merge();
  if (lengths.count == 0) {
    std::memcpy(into, from, element_bytes);
    return;
  }
  const copied_length& inner = lengths.all[lengths.count - 1];
  if (inner.into == step && inner.from == step) {
    const std::size_t run = static_cast<std::size_t>(inner.length) * element_bytes;
    lengths.walk(1, into, from, [&](std::byte* to, const std::byte* at) { std::memcpy(to, at, run); });
    return;
  }
  lengths.turn_to_source();
  const bool flat = lengths.count == 1;
  const copied_length outer = flat ? copied_length{} : lengths.all[lengths.count - 2];
  const auto plane = element_bytes == 1   ? &copy_plane<1>
                     : element_bytes == 2 ? &copy_plane<2>
                     : element_bytes == 4 ? &copy_plane<4>
                     : element_bytes == 8 ? &copy_plane<8>
                                          : &copy_plane<0>;
  lengths.walk(flat ? 1 : 2, into, from,
               [&](std::byte* to, const std::byte* at) { plane(to, at, outer, inner, element_bytes); });
}

PENSTOCK_INLINE void refuse_count(const extents& shape, std::size_t given) {
  throw error(errc::shape, {"a destination of shape ", to_string(shape), " takes ", shape.elements(),
                            " values, and ", given, " were given; pass as many as its shape has"});
}

}  // namespace penstock::inline v0_1::detail
