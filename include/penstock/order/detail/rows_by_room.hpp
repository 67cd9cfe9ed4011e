// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>

#include <bit>
#include <vector>

namespace penstock::inline v0_1::detail {

/// A list of rows for each amount of free room, and the least room that has a list in O(log room).
///
/// Rooms are the leaves of a tree in which a node has 64 children and a bit for each that exists: 3 levels
/// for rooms up to 2^18. Nodes exist only on the way to rooms that have a list, so that memory depends on the
/// number of lists, not on the largest room. The links between the rows of a list are the caller's.
class rows_by_room {
 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  /// Rooms from 1 to `largest`, which is below 2^31.
  void reset(std::uint32_t largest);

  /// The least room of at least `room` that has a list; `none` if there is none.
  [[nodiscard]] std::uint32_t least(std::uint32_t room) const noexcept;
  /// The first row of a room's list, which exists.
  [[nodiscard]] std::uint32_t& first(std::uint32_t room) noexcept;
  /// The same, and the list is made if there is none; then the first row is `none`.
  [[nodiscard]] std::uint32_t& make(std::uint32_t room);
  /// Removes a room's list, which exists.
  void remove(std::uint32_t room) noexcept;

 private:
  struct node {
    std::uint64_t used;          // bit d: child d exists
    std::uint32_t children[64];  // nodes; in the lowest level, first rows
  };
  static constexpr int bits = 6, max_levels = 6;

  [[nodiscard]] static std::uint32_t digit(std::uint32_t key, int level) noexcept {
    return key >> (level * bits) & 63u;
  }
  [[nodiscard]] std::uint32_t fresh_node();

  std::vector<node> nodes_;  // the first one is the root
  std::uint32_t largest_ = 0, made_ = 0, removed_ = none;
  int levels_ = 1;
};

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/order/detail/rows_by_room.ipp>
#endif
