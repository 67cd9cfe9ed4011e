// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/position.hpp>
#include <penstock/core/random.hpp>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <vector>

/// Bad samples on their way from the worker that met them to the consumer, and their substitutes.
namespace penstock::inline v0_1 {

/// A bad sample that the run tolerates.
struct bad_slot {
  std::uint64_t row = 0;  ///< its row; in a chunk, the row where it would have begun
  position at;
  error what;
  std::optional<position> substitute{};  ///< the position whose sample takes its place
  std::uint32_t tries = 0;               ///< substitutes that were drawn
  bool hole = false;                     ///< the row exists and is empty
};

/// The bad samples of a block.
class bad_slots {
 public:
  void clear() noexcept { all_.clear(); }
  [[nodiscard]] bool empty() const noexcept { return all_.empty(); }
  [[nodiscard]] const std::vector<bad_slot>& all() const noexcept { return all_; }

  void add(const bad_slot& one) { all_.push_back(one); }
  /// The bad sample whose substitute is in a row, or null.
  [[nodiscard]] bad_slot* find_replaced(std::uint64_t row) noexcept {
    for (bad_slot& one : all_)
      if (one.row == row && one.substitute) return &one;
    return nullptr;
  }
  void sort() noexcept {
    std::sort(all_.begin(), all_.end(),
              [](const auto& a, const auto& b) { return a.row != b.row ? a.row < b.row : a.at < b.at; });
  }
  /// How many of the rows [first, first + count) are empty.
  [[nodiscard]] std::size_t holes(std::uint64_t first, std::uint64_t count) const noexcept {
    std::size_t found = 0;
    for (const bad_slot& one : all_) found += one.hole && one.row >= first && one.row < first + count;
    return found;
  }
  /// The mask of the rows [first, first + count), of which the first `valid` are no padding: 1 for each that
  /// holds a sample.
  void mark(std::uint8_t* mask, std::uint64_t first, std::size_t count, std::size_t valid) const noexcept {
    std::fill_n(mask, valid, std::uint8_t{1});
    std::fill_n(mask + valid, count - valid, std::uint8_t{0});
    for (const bad_slot& one : all_)
      if (one.hole && one.row >= first && one.row < first + count) mask[one.row - first] = 0;
  }

 private:
  std::vector<bad_slot> all_;
};

/// Bad samples end the run.
struct bad_is_fatal {
  static constexpr bool tolerates = false, replaces = false;
};
/// Bad samples leave holes.
struct bad_is_skipped {
  static constexpr bool tolerates = true, replaces = false;
};
/// Substitutes take the place of bad samples: number j for position p of an epoch is the sample at another
/// position of that epoch, drawn uniformly at the address (seed, epoch, p, j). So every rank draws the same
/// one, whatever the number of ranks; it is among what `take` and `skip` left, and ranks need not
/// communicate.
///
/// A draw costs as much as looking up one position, O(shards) for a windowed order. Thread-safe.
template <class Orders>
struct bad_is_replaced {
  static constexpr bool tolerates = true, replaces = true;
  static constexpr std::uint32_t max_tries = 16;  ///< tries

  const Orders* orders = nullptr;
  std::uint64_t seed = 0;

  /// The position to try as substitute number `j`.
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

namespace detail {

/// An error with another message and the location of `e`.
[[nodiscard, gnu::cold]] inline error error_like(const error& e, std::initializer_list<piece> message) {
  error made(e.code(), message);
  if (!e.stage().empty()) made.in_stage(e.stage());
  if (!e.file().empty()) made.in_file(e.file());
  if (!e.key().empty()) made.for_key(e.key());
  if (e.offset()) made.at_offset(*e.offset());
  if (e.at()) made.add_context(*e.at());
  return made;
}

}  // namespace detail

}  // namespace penstock::inline v0_1
