// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#include <compare>
#include <span>

namespace penstock::inline v0_1 {

/// A sample's place in the global order: the epoch, and the index in it. Identical on every rank.
struct position {
  std::uint64_t epoch = 0;
  std::uint64_t index = 0;

  friend constexpr auto operator<=>(const position&, const position&) = default;
};

namespace detail {

/// Whether these lie one behind the other, by the first two and the last: enough to decide what to prefetch.
[[nodiscard]] constexpr bool seem_consecutive(std::span<const position> next) noexcept {
  return next.size() > 1 && next[1].index - next[0].index == 1 &&
         next.back().index - next[0].index == next.size() - 1;
}

}  // namespace detail

/// A place in a source that can only be read forward: the shard, and how many of its samples have been
/// delivered.
struct source_mark {
  std::uint64_t shard = 0;
  std::uint64_t sample = 0;

  friend constexpr auto operator<=>(const source_mark&, const source_mark&) = default;
};

/// Where an element came from: its position, and the piece if a stage made several pieces of one
/// sample.
struct origin {
  position at;
  std::uint32_t piece = 0;

  friend constexpr auto operator<=>(const origin&, const origin&) = default;
};

}  // namespace penstock::inline v0_1
