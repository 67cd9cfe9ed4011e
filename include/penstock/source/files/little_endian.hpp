// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>

#include <concepts>
#include <cstddef>

namespace penstock::inline v0_1 {
namespace detail {

/// Reads a little-endian number at an offset that the caller has checked.
template <std::unsigned_integral N>
[[nodiscard]] N little_endian(bytes_view bytes, std::size_t at) noexcept {
  N value = 0;
  for (std::size_t i = 0; i < sizeof(N); ++i)
    value = static_cast<N>(value | static_cast<N>(std::to_integer<N>(bytes[at + i]) << (8 * i)));
  return value;
}

}  // namespace detail
}  // namespace penstock::inline v0_1
