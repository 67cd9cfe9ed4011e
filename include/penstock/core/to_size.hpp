// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#include <concepts>

namespace penstock::inline v0_1::detail {

/// A 64-bit count as a `std::size_t`, for a container. Where that is the same type it is no cast, so that
/// `-Wuseless-cast` has nothing to say; elsewhere the caller knows that the count fits in memory.
template <std::unsigned_integral T>
[[nodiscard]] constexpr std::size_t to_size(T count) noexcept {
  if constexpr (std::same_as<T, std::size_t>)
    return count;
  else
    return static_cast<std::size_t>(count);
}

}  // namespace penstock::inline v0_1::detail
