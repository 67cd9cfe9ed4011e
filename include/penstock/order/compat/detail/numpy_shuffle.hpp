// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#include <utility>

namespace penstock::inline v0_1::detail {

/// A number in [0, maximum], drawn by masking: numpy's `random_interval`
/// (`numpy/random/src/distributions/distributions.c`). `draw` has `next32()` and `next64()`.
template <class Draw>
[[nodiscard]] std::uint64_t numpy_interval(Draw& draw, std::uint64_t maximum) noexcept {
  if (maximum == 0) return 0;
  std::uint64_t mask = maximum;
  for (unsigned shift = 1; shift < 64; shift *= 2) mask |= mask >> shift;
  while (true) {
    const std::uint64_t drawn = (maximum > 0xffffffffu ? draw.next64() : draw.next32()) & mask;
    if (drawn <= maximum) return drawn;
  }
}

/// numpy's `shuffle` of the `count` elements that start at `first`, of an array of one dimension.
template <class Draw, class First>
void numpy_shuffle(Draw& draw, First first, std::uint64_t count) noexcept {
  using distance = decltype(first - first);
  for (std::uint64_t i = count; i-- > 1;)
    std::swap(first[static_cast<distance>(i)], first[static_cast<distance>(numpy_interval(draw, i))]);
}

}  // namespace penstock::inline v0_1::detail
