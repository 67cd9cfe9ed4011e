// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/position.hpp>
#include <penstock/core/random.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

/// Bad samples on their way from the worker that met them to the consumer, and what stands in for one.
namespace penstock::inline v0_1 {

/// A bad sample that a run goes on without.
struct bad_slot {
  std::uint64_t row = 0;  ///< where it would be; in a chunk, where it would begin
  position at;
  error what;
  std::optional<position> substitute{};  ///< the position whose sample stands there instead
  std::uint32_t tries = 0;               ///< substitutes that were drawn
  bool hole = false;                     ///< the row is there and holds nothing
};

/// The bad samples of a block.
class bad_slots {
 public:
  void clear() noexcept { all_.clear(); }
  [[nodiscard]] bool empty() const noexcept { return all_.empty(); }
  [[nodiscard]] const std::vector<bad_slot>& all() const noexcept { return all_; }

  void add(const bad_slot& one);
  /// The one whose substitute stands in a row, or null.
  [[nodiscard]] bad_slot* find_replaced(std::uint64_t row) noexcept {
    for (bad_slot& one : all_)
      if (one.row == row && one.substitute) return &one;
    return nullptr;
  }
  void sort() noexcept;
  /// How many of the rows [first, first + count) hold nothing.
  [[nodiscard]] std::size_t holes(std::uint64_t first, std::uint64_t count) const noexcept {
    std::size_t found = 0;
    for (const bad_slot& one : all_) found += one.hole && one.row >= first && one.row < first + count;
    return found;
  }

 private:
  std::vector<bad_slot> all_;
};

namespace detail {

/// Another error of the same place.
[[nodiscard, gnu::cold]] error error_like(const error& e, std::initializer_list<piece> message);

}  // namespace detail

/// Bad samples end the run.
struct bad_is_fatal {
  static constexpr bool tolerates = false, replaces = false;
};
/// They leave holes.
struct bad_is_skipped {
  static constexpr bool tolerates = true, replaces = false;
};
/// Others stand in for them: number j for position p of an epoch is the sample at another position of that
/// epoch, drawn evenly with the address (seed, epoch, p, j). So it is the same on every rank and any number
/// of them, comes out of what `take` and `skip` left, and nobody needs to know what others have.
///
/// A draw costs what finding one position costs, O(shards) for a windowed order. Free for all threads.
template <class Orders>
struct bad_is_replaced {
  static constexpr bool tolerates = true, replaces = true;
  static constexpr std::uint32_t most = 16;  ///< tries

  const Orders* orders = nullptr;
  std::uint64_t seed = 0;

  /// The position whose sample is tried as number `j`.
  [[nodiscard]] position draw(position p, std::uint32_t j) const {
    const std::uint64_t size = orders->size();
    if (size < 2)
      throw error(errc::argument, "bad_samples::replace: an epoch of one sample has no other to take");
    rng random(seed, p.epoch, p.index, stream + j);
    const std::uint64_t other = random.below(size - 1);
    return {p.epoch, other < p.index ? other : other + 1};
  }

 private:
  static constexpr std::uint64_t stream = 0x6261645f73616d70u;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/run/bad/bad_slot.ipp>
#endif
