// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/position.hpp>
#include <penstock/observe/run_monitor.hpp>
#include <penstock/order/tail.hpp>
#include <penstock/run/bad/bad_tally.hpp>
#include <penstock/run/block/block.hpp>
#include <penstock/run/engine/engine_shell.hpp>
#include <penstock/run/feed/feed.hpp>
#include <penstock/run/feed/placement.hpp>
#include <penstock/run/feed/selection.hpp>
#include <penstock/run/state.hpp>

#include <exception>
#include <memory>
#include <optional>
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
  bool packs = false;              ///< `pack` makes the rows of batches from these rows
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
  /// With `pack`: a window begins with the next row.
  void begin_window(feed& delivered);
  /// Its number in its epoch.
  [[nodiscard]] std::uint64_t window() const noexcept { return from_.window; }
  /// It has all of its samples.
  void end_window(const feed& delivered) noexcept {
    if (delivered.epoch() != from_.epoch) return;  // the next epoch has begun
    ++window_;
    window_rows_ = 0;
  }
  /// Rows of the window that a state says are done.
  [[nodiscard]] std::uint64_t window_rows_done() const noexcept { return from_.window_rows; }
  /// Records that so many rows of the window that began last are delivered, and `step` batches.
  void commit_window(std::uint64_t rows, std::uint64_t step, std::uint64_t bad) {
    committed_ = from_;
    committed_.window_rows = rows;
    committed_.step = step;
    committed_.bad = bad;
  }
  /// Counts one more delivered row of a loop without batches.
  void count_row() noexcept { ++step_; }
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
    std::uint64_t window = 0, window_rows = 0;
    std::vector<std::uint64_t> front;
  };

  /// The consumer's current place, but for the bad samples.
  void set(mark& here, const feed& delivered) const;

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
  std::uint64_t window_ = 0;          // with `pack`: windows of this epoch that have had their last row
  std::uint64_t window_rows_ = 0;     // rows of the next one that a state says are done
  mark from_;                         // where the last window began
  std::optional<feed> from_feed_;     // and the feed there, whose cursor would take long to find again
  mark committed_;
};

/// Writes the contents of a `shuffle_buffer` to a state.
void write_cursor(state& s, const position_buffer& cursor);

/// What the shell of a hand-out is given at construction.
struct delivery_setup {
  row_rules rules;
  selection steps;               ///< take and skip after `batch`, if batches are gathered
  std::uint64_t batch_size = 1;  ///< rows of a gathered batch
  tail at_end = tail::keep;
  bool in_place = false;   ///< blocks are batches, not chunks
  bool forward = false;    ///< the source can only be read forward
  bool has_steps = false;  ///< `steps(n)`: a pass over the data without a result is an error
  bool pieces = false;     ///< rows within one chunk can be a batch without a copy
};

/// The plan-specific operations of a hand-out. `self` is the plan's part, which created the shell.
struct delivery_calls {
  void (*learn_from)(void* self, block&);                                      ///< the shapes of a block
  void (*see_dealt)(void* self, block&, std::uint64_t row, bool begins_step);  ///< a row, of any rank
  void (*name_sample)(void* self, error&, position) noexcept;                  ///< adds which sample failed
  sample_place (*place_of)(void* self, position);                              ///< for a ledger
  const tally_calls* tally;  ///< null if bad samples are fatal
};

/// What a run delivers and where its consumer stands: everything except the values.
///
/// Where batches are written in place, the batches of a block are delivered one after another. Otherwise the
/// rows of chunks are found in order: they are the elements of a loop without batches, or are gathered into
/// batches. One thread at a time is the consumer.
class delivery_shell : public std::enable_shared_from_this<delivery_shell> {
 public:
  /// `tally`: null if bad samples are fatal.
  delivery_shell(engine_shell& engine, tolerant_tally* tally, const delivery_calls& calls, void* self,
                 delivery_setup setup, void (*destroy)(block*) noexcept);
  delivery_shell(const delivery_shell&) = delete;
  delivery_shell& operator=(const delivery_shell&) = delete;
  ~delivery_shell();
  /// Shares ownership of `made`; every block that is held shares it too.
  [[nodiscard]] static shared<delivery_shell> kept(delivery_shell* made,
                                                   void (*destroy)(delivery_shell*) noexcept);

  /// Gives up shares of a block; the last one returns it to its pool. Any thread. Not in a child after fork,
  /// where another thread of the parent may have held the pool's lock.
  static void give_up(block& b, std::uint32_t shares) noexcept;
  /// In a child after fork: keeps this alive as long as the process. There is no thread to join, and locks
  /// that threads of the parent held stay locked.
  void keep_forever() noexcept;

  [[nodiscard]] std::uint64_t epoch() noexcept {
    return has_window_row() ? window_epoch_ : engine_.delivered_feed().epoch();
  }
  void drop() noexcept;
  /// The run is about to be destroyed.
  void end_monitors() noexcept {
    if (monitored_) monitored_->end();
  }
  /// Moves to the place in a state; drops what was begun.
  void seek(const state& s);
  void go_to_epoch(std::uint64_t epoch);
  /// Starts the next epoch if this one has had its batches, by steps(n) or by a take after batch.
  void leave_finished_epoch() {
    if (!setup_.in_place && place_.number() != 0) (void)end_of_steps();
  }
  /// Whether nothing of an epoch has been delivered and its first element is next. Does not allocate.
  [[nodiscard]] bool is_at_beginning_of(std::uint64_t epoch);
  void write_state(state& s);
  /// Adds to an error with a position the file and the key of the sample there, if it has them.
  void add_sample(error& e) const noexcept {
    if (e.at()) calls_->name_sample(plan_part_, e, *e.at());
  }
  [[nodiscard]] static std::vector<position> positions(const block& b, std::size_t first, std::size_t count);

 protected:
  [[noreturn]] void fail(const std::exception_ptr& what);
  /// Gives out the handle of a block, with so many shares.
  void hold(block& b, std::uint32_t shares);
  /// Takes back a share in the consumer's thread; shares of one block are given up together.
  void take_back(block* b) noexcept;

  /// Batches in place: the next batch of `epoch`, in `block_`; null at its end or if the run was stopped.
  [[nodiscard]] const batch_rows* next_in_place(std::uint64_t epoch);

  /// Chunks: makes `place_.row()` of `block_` the next row that passes; false at the epoch's end or if the
  /// run was stopped.
  [[nodiscard]] bool find_row(std::uint64_t epoch) {
    return (at_row(epoch) && place_.passes()) || look_for_row(epoch);
  }
  /// Chunks: whether the next row can be used without further checks.
  [[nodiscard]] bool at_row(std::uint64_t epoch) noexcept {
    return block_ != nullptr && tally_ == nullptr && place_.row() < good_rows() &&
           engine_.delivered_feed().epoch() == epoch;
  }
  /// Usable rows of the current chunk: those before its failure, if it has one.
  [[nodiscard]] std::uint64_t good_rows() const noexcept {
    return block_->what != nullptr && block_->bad_slot < block_->rows ? block_->bad_slot : block_->rows;
  }
  /// Shows the tally the bad samples that were left out before row `end` of the chunk, except those of rows
  /// that a state says are done, which were counted already.
  void see_bad(std::uint64_t end);
  /// Shows the tally the holes that putting columns in order has left in a batch.
  void see_holes(block& out, std::uint64_t epoch);
  /// Commits the bad samples seen so far, as part of what is being delivered.
  void commit_bad(std::uint64_t epoch);
  /// Commits everything found and delivered so far.
  void commit() { place_.commit(engine_.delivered_feed(), bad_so_far()); }
  /// Commits a batch, the one of this number, after which the next row comes.
  void commit_batch(std::uint64_t epoch, std::uint64_t number);
  /// `pack` without lengths: whether rows of the last window are not delivered yet.
  [[nodiscard]] bool has_window_row() const noexcept { return window_row_ != window_rows_; }
  /// A window has been packed into `rows` rows, some of which a state may say are done.
  void begin_window_rows(std::uint64_t rows, std::uint64_t epoch);
  /// Throws the error of a sample that is longer than a row.
  [[noreturn]] void refuse_long_sample(position at, std::uint64_t length, std::uint64_t capacity);
  /// Commits at an epoch's end; does nothing if the run was stopped.
  void commit_end(std::uint64_t epoch);
  /// Whether this epoch has had its batches, by steps(n) or by a take after batch; if so, starts the next
  /// epoch.
  [[nodiscard]] bool end_of_steps();
  /// A batch made of part of the current chunk without a copy; null if it does not fit or must be copied.
  [[nodiscard]] block* take_piece(std::uint64_t epoch, batch_rows& batch);

  delivery_setup setup_;
  consumer_place place_;
  block* block_ = nullptr;    // the current block
  block* filling_ = nullptr;  // a batch in progress
  block_pool gathered_;       // batches made from rows of chunks
  // `pack` without lengths: rows of the last window, and the next one of them
  std::uint64_t window_rows_ = 0, window_row_ = 0, window_epoch_ = 0;

 private:
  /// The shares of a chunk, whose number of pieces is unknown: more than there can be.
  static constexpr std::uint32_t pieces = 1u << 30;

  void or_fail(auto f) {
    try {
      f();
    } catch (...) {
      fail(std::current_exception());
    }
  }
  [[nodiscard]] bool has_steps_of_epoch(std::uint64_t number);
  [[nodiscard]] bool used_up() const noexcept { return setup_.in_place && next_ == block_->batches.size(); }
  [[nodiscard]] bool take_block();
  void leave_block() noexcept;
  void see(std::uint64_t epoch, const bad_slot& one);
  void count_bad(std::uint64_t epoch);
  void pass_bad(block& b, const batch_rows& batch);
  [[nodiscard]] std::uint64_t bad_so_far();
  [[nodiscard]] bool look_for_row(std::uint64_t epoch);
  [[nodiscard]] selection::verdict find_in_chunk();
  void leave_chunk();
  void end_pass();
  void check_pass();

  engine_shell& engine_;
  tolerant_tally* tally_;
  const delivery_calls* calls_;
  void* plan_part_;
  std::uint64_t last_pass_ = 0;  // the last one whose window had a row
  std::size_t next_ = 0;         // batches in place: the next one of the block
  std::size_t bad_ = 0;          // bad samples of the chunk already seen
  std::uint32_t shares_ = 0;     // of the block
  std::uint32_t out_ = 0;        // of `shares_`, those delivered and not taken back
  shared<delivery_shell> self_;

 protected:
  shared<detail::monitored_run> monitored_;  // once a monitor was asked for
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/run/delivery/delivery_shell.ipp>
#endif
