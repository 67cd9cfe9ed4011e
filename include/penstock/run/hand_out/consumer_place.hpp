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

/// Which rows of chunks are the consumer's: what a plan says of them, in numbers.
struct row_rules {
  selection rows;              ///< take, skip and shard behind deciders
  std::uint64_t ranks = 1;     ///< of the plan's world
  std::uint64_t rank = 0;      ///< which one is ours
  std::uint64_t global = 1;    ///< rows of a global step
  bool batched = false;        ///< else a loop without batches
  bool deals = false;          ///< the ranks deal what deciders keep
  bool dealt_in_turn = false;  ///< a loop without batches and deciders over an indexed source
};

/// Where the consumer stands among the rows of chunks. It goes on row by row; a state says where it stood at
/// the last `commit`, which comes with each element that is handed out. What was begun since, a batch that is
/// not full or bad samples that are not counted, is not in it.
class consumer_place {
 public:
  explicit consumer_place(row_rules rules) : rules_(std::move(rules)) {}

  /// The next row of the chunk at hand.
  [[nodiscard]] std::uint64_t row() const noexcept { return row_; }
  /// Whether a state says that the next row is done.
  [[nodiscard]] bool done_before() const noexcept { return to_skip_ != 0; }
  /// Whether every row from here on is the next one of this rank.
  [[nodiscard]] bool all_pass() const noexcept { return rules_.rows.trivial() && dealt_ >= done_; }
  /// Whether the next row is this rank's, without a look; it counts as one that was let through then.
  [[nodiscard]] bool passes() noexcept {
    if (to_skip_ != 0 || !all_pass()) return false;
    passed_ += 1;
    return true;
  }
  /// Whether any row of this pass was let through by take and skip.
  [[nodiscard]] bool any_passed() const noexcept { return passed_ != 0; }
  /// What becomes of the next row. pass: it is this rank's; drop: it is not; end: nothing more passes in this
  /// pass.
  [[nodiscard]] selection::verdict look() noexcept;
  /// Goes by so many rows.
  void go_by(std::uint64_t count) noexcept {
    row_ += count;
    survivors_ += count;
  }
  /// The same for rows that the consumer gets.
  void take(std::uint64_t count) noexcept {
    go_by(count);
    dealt_ += count;
  }
  /// The chunk at hand is used up, and the front of a forward source stood there behind it.
  void next_chunk(std::vector<std::uint64_t>& front) noexcept {
    row_ = 0;
    front_.swap(front);
  }
  /// A pass begins where the feed stands.
  void begin_pass(const feed& at) noexcept;

  /// Elements of this epoch that were handed out when `commit` was called last.
  [[nodiscard]] std::uint64_t number() const noexcept { return committed_.step; }
  /// One more row of a loop without batches is handed out.
  void count_row() noexcept { ++step_; }
  /// So many elements of this epoch are handed out.
  void count_to(std::uint64_t number) noexcept { step_ = number; }

  /// Goes, with a feed, to where a state says.
  void seek(feed& at, state s);
  /// This is where the consumer stands now, with the feed of what was delivered and so many bad samples in
  /// its epoch.
  void commit(const feed& delivered, std::uint64_t bad);
  /// The next row of a loop without batches is handed out, and that is committed, where nothing lies between
  /// it and the one before it in its chunk; else nothing is done.
  [[nodiscard]] bool hand_out_next(const feed& delivered) noexcept {
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
  /// Whether it stood at the beginning of an epoch at the last commit.
  [[nodiscard]] bool is_at_beginning_of(std::uint64_t epoch) const noexcept {
    return committed_.epoch == epoch && committed_.pass == 0 && committed_.ordinal == 0 &&
           committed_.step == 0 && committed_.rows == 0;
  }
  /// Writes down where it stood at the last commit.
  void write(state& s, feed& delivered) const;

 private:
  /// What a state says.
  struct mark {
    std::uint64_t epoch = 0, pass = 0, ordinal = 0, step = 0, rows = 0, survivors = 0, dealt = 0, bad = 0;
    std::vector<std::uint64_t> front;
  };

  row_rules rules_;
  std::uint64_t row_ = 0;
  std::uint64_t to_skip_ = 0;    // rows of the chunk at hand that a state says are done
  std::uint64_t survivors_ = 0;  // rows of this pass before this one, less those
  std::uint64_t passed_ = 0;     // of them, those that take and skip let through
  std::uint64_t step_ = 0;
  std::uint64_t dealt_ = 0, done_ = 0;  // of this epoch and all ranks; below `done_` they are of steps before
  std::uint64_t beyond_ = 0;  // loops without batches: rows of all ranks on other ones, beyond whole steps
  std::vector<std::uint64_t> front_;  // forward sources: where the front stood before the chunk at hand
  mark committed_;
};

/// Writes what a `shuffle_buffer` holds.
void write_cursor(state& s, const position_buffer& cursor);

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/run/hand_out/consumer_place.ipp>
#endif
