// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/any_count.hpp>
#include <penstock/core/error.hpp>

#include <cstdint>
#include <string_view>

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

}  // namespace penstock::inline v0_1::detail
