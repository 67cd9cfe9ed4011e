// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#include <compare>
#include <cstdint>

namespace penstock::inline v0_1 {

/// A sample's place in the global order: which epoch, and the index in it. The same on every rank.
struct position {
  std::uint64_t epoch = 0;
  std::uint64_t index = 0;

  friend constexpr auto operator<=>(const position&, const position&) = default;
};

/// A place in a source that can only be read forward: how many samples of which shard were given.
struct source_mark {
  std::uint64_t shard = 0;
  std::uint64_t sample = 0;

  friend constexpr auto operator<=>(const source_mark&, const source_mark&) = default;
};

/// Where an element came from: its position, and which piece of it where a stage made several of one.
struct origin {
  position at;
  std::uint32_t piece = 0;

  friend constexpr auto operator<=>(const origin&, const origin&) = default;
};

}  // namespace penstock::inline v0_1
