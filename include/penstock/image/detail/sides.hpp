// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/any_count.hpp>
#include <penstock/core/error.hpp>
#include <penstock/image/pixels.hpp>

/// Sizes that operations on images are given.
namespace penstock::inline v0_1::detail {

/// The longest side of an image that an operation may be asked for.
inline constexpr std::uint32_t longest_side = 1u << 20;

/// A side of an image, or a distance in one. Throws `errc::argument`, naming `operation`, if it is negative,
/// less than `least`, or more than 2^20.
[[nodiscard]] inline std::uint32_t side_of(const any_count& n, std::string_view operation,
                                           std::uint32_t least = 1) {
  const std::uint64_t value = n.of(operation);
  if (value < least)
    throw error(errc::argument, {operation, ": a side of ", value, " pixels; write at least ", least});
  if (value > longest_side)
    throw error(errc::argument, {operation, ": ", value, " pixels; write at most ", longest_side});
  return static_cast<std::uint32_t>(value);
}

/// A size as an operation is given it: "(224)", or "(height, width)".
[[nodiscard]] inline std::string sides_text(const image_size& size) {
  const std::string height = "(" + std::to_string(size.height);
  return size.height == size.width ? height + ")" : height + ", " + std::to_string(size.width) + ")";
}

}  // namespace penstock::inline v0_1::detail
