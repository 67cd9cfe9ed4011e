// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/storage/cache/block_index.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace penstock::inline v0_1::detail::blocks {

/// What one session knows of the blocks that its run will read: when each is needed next.
///
/// It is told each read once, in the order of rows, up to as many as it can keep, and forgets what the run
/// has passed. Reads of a block that follow each other closely are one use, from the first to the last.
/// Cost: 24 to 48 bytes for each use that is to come, and some 60 for each block; a lock per read that it is
/// told. What throws std::bad_alloc has changed nothing.
/// Threads: any.
class block_plan {
 public:
  /// So many uses are kept; a session is told no more until some are passed.
  static constexpr std::size_t max_uses = std::size_t{1} << 20;
  /// Reads of a block within so many rows are one use.
  static constexpr std::uint64_t close = 4;
  /// But a use is no longer than this: those behind it are forgotten after it.
  static constexpr std::uint64_t longest_use = std::uint64_t{1} << 16;

  /// Adds the blocks of an object; returns the number of the first.
  [[nodiscard]] std::uint32_t add(const std::vector<key>& blocks);
  /// A block will be read at a row, none earlier than any before.
  void plan_read(std::uint32_t block, std::uint64_t row);
  [[nodiscard]] bool has_room() const;
  /// The run has passed all rows before `row`; what it reads before `seen` is known, and if `ends`, it
  /// reads nothing after that.
  void stand_at(std::uint64_t row, std::uint64_t seen, bool ends);
  /// What it was told is void: the run went elsewhere.
  void clear();

  [[nodiscard]] next_use next(std::uint32_t block) const;
  /// Of a block that has this key, which may be of somebody else.
  [[nodiscard]] next_use next(const key& what) const;

  /// How many rows away that is; `next_uses::farthest` if it is never.
  [[nodiscard]] std::uint64_t distance(const key& what) const;

  struct coming {
    std::uint32_t block = 0;
    std::uint64_t row = 0;
  };
  /// The blocks that are needed next, in that order, each once, up to `maximum` of them.
  void list_coming(std::size_t maximum, std::vector<coming>& into) const;

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  struct use {
    std::uint64_t first, last;
    std::uint32_t block, next;  // the next use of the block: a place in `uses_`
  };
  struct known {
    std::uint32_t head = none, tail = none;  // its uses that are to come
  };

  [[nodiscard]] use& at(std::uint64_t number) const noexcept {
    return uses_[to_size(number & (uses_.size() - 1))];
  }
  void append(std::uint32_t block, std::uint64_t row);
  void grow();
  [[nodiscard]] next_use next_locked(std::uint32_t block) const noexcept;
  [[nodiscard]] std::uint32_t find(const key& what) const noexcept;
  void place(std::uint32_t block) noexcept;

  mutable std::mutex mutex_;
  std::vector<key> keys_;  // of each block
  std::vector<known> blocks_;
  std::vector<std::uint32_t> table_;   // by key: the number of a block and 1, or 0
  mutable std::vector<use> uses_;      // a ring of uses in the order of their first rows
  std::uint64_t begin_ = 0, end_ = 0;  // the numbers of those that are there
  std::uint64_t row_ = 0, seen_ = 0;
  bool ends_ = false;
};

}  // namespace penstock::inline v0_1::detail::blocks

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/cache/block_plan.ipp>
#endif
