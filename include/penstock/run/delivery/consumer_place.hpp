// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/run/feed/feed.hpp>
#include <penstock/run/feed/selection.hpp>
#include <penstock/run/state.hpp>

#include <cstdint>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// Which rows of chunks belong to the consumer: a plan's rules, in numbers.
struct row_rules {
  selection rows;                  ///< take, skip and shard after filters
  std::uint64_t ranks = 1;         ///< in the plan's world
  std::uint64_t rank = 0;          ///< this rank
  std::uint64_t global = 1;        ///< rows of a global step
  bool batched = false;            ///< false: a loop without batches
  bool deals = false;              ///< the ranks share what filters keep
  bool dealt_in_rotation = false;  ///< a loop without batches or filters over an indexed source
};

/// The consumer's place among the rows of chunks. It advances row by row; a state records the place at the
/// last `commit`, which accompanies each delivered element. Work begun since then, such as a partial batch or
/// bad samples not yet counted, is not included.
class consumer_place {
 public:
  explicit consumer_place(row_rules rules) : rules_(std::move(rules)) {}

  /// The next row of the current chunk.
  [[nodiscard]] std::uint64_t row() const noexcept { return row_; }
  /// Whether a state says that the next row is done.
  [[nodiscard]] bool done_before() const noexcept { return to_skip_ != 0; }
  /// Whether every row from here on belongs to this rank.
  [[nodiscard]] bool all_pass() const noexcept { return rules_.rows.trivial() && dealt_ >= done_; }
  /// Whether the next row can be passed without `look`; if so, counts it as passed.
  [[nodiscard]] bool passes() noexcept {
    if (to_skip_ != 0 || !all_pass()) return false;
    passed_ += 1;
    return true;
  }
  /// Whether take and skip passed any row of this pass.
  [[nodiscard]] bool any_passed() const noexcept { return passed_ != 0; }
  /// Decides on the next row. pass: it belongs to this rank; drop: it does not; end: nothing more passes in
  /// this pass.
  [[nodiscard]] selection::verdict look() noexcept;
  /// After `look`: whether the row counts among those that several ranks share; and whether it is the first
  /// one of a global step.
  [[nodiscard]] bool is_dealt() const noexcept { return is_dealt_; }
  [[nodiscard]] bool begins_step() const noexcept { return is_dealt_ && before_it_ % rules_.global == 0; }
  /// Skips so many rows.
  void go_by(std::uint64_t count) noexcept {
    row_ += count;
    survivors_ += count;
  }
  /// Advances past rows that the consumer receives.
  void take(std::uint64_t count) noexcept {
    go_by(count);
    dealt_ += count;
  }
  /// The current chunk is used up; `front` is the place of a forward source's front after it.
  void next_chunk(std::vector<std::uint64_t>& front) noexcept {
    row_ = 0;
    front_.swap(front);
  }
  /// A pass starts where the feed stands.
  void begin_pass(const feed& at) noexcept;

  /// Elements of this epoch delivered at the last `commit`.
  [[nodiscard]] std::uint64_t number() const noexcept { return committed_.step; }
  /// Counts one more delivered row of a loop without batches.
  void count_row() noexcept { ++step_; }
  /// Sets the number of delivered elements of this epoch.
  void count_to(std::uint64_t number) noexcept { step_ = number; }

  /// Moves, with a feed, to where a state says.
  void seek(feed& at, state s);
  /// Records the consumer's current place: the feed of what was delivered, and the bad samples of its epoch.
  void commit(const feed& delivered, std::uint64_t bad);
  /// In a loop without batches: delivers and commits the next row if nothing lies between it and the previous
  /// one in its chunk; otherwise does nothing and returns false.
  [[nodiscard]] bool deliver_next(const feed& delivered) noexcept {
    if (row_ == 0 || row_ != committed_.rows || committed_.ordinal != delivered.step() || !passes())
      return false;
    take(1);
    ++step_;
    ++committed_.rows;
    ++committed_.survivors;
    ++committed_.step;
    committed_.dealt += rules_.ranks;
    return true;
  }
  /// Whether the last commit was at the beginning of an epoch.
  [[nodiscard]] bool is_at_beginning_of(std::uint64_t epoch) const noexcept {
    return committed_.epoch == epoch && committed_.pass == 0 && committed_.ordinal == 0 &&
           committed_.step == 0 && committed_.rows == 0;
  }
  /// Writes the place at the last commit to a state.
  void write(state& s, feed& delivered) const;

 private:
  /// What a state records.
  struct mark {
    std::uint64_t epoch = 0, pass = 0, ordinal = 0, step = 0, rows = 0, survivors = 0, dealt = 0, bad = 0;
    std::vector<std::uint64_t> front;
  };

  row_rules rules_;
  std::uint64_t row_ = 0;
  std::uint64_t to_skip_ = 0;    // rows of the current chunk that a state says are done
  std::uint64_t survivors_ = 0;  // rows of this pass before `row_`, less `to_skip_`
  std::uint64_t passed_ = 0;     // of `survivors_`, those that take and skip passed
  std::uint64_t step_ = 0;
  std::uint64_t dealt_ = 0, done_ = 0;  // of this epoch, over all ranks; below `done_` from earlier steps
  std::uint64_t before_it_ = 0;         // of the row looked at, if it is dealt: those dealt before
  bool is_dealt_ = false;
  std::uint64_t beyond_ = 0;          // loops without batches: rows of other ranks beyond whole steps
  std::vector<std::uint64_t> front_;  // forward sources: the front's place before the current chunk
  mark committed_;
};

/// Writes the contents of a `shuffle_buffer` to a state.
void write_cursor(state& s, const position_buffer& cursor);

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/run/delivery/consumer_place.ipp>
#endif
