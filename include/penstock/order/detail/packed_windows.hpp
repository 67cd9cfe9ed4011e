// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/cost_cut.hpp>
#include <penstock/order/window_packer.hpp>

#include <array>
#include <mutex>
#include <utility>

/// The windows of an epoch whose samples are packed into rows, and the steps of those rows.
namespace penstock::inline v0_1::detail {

/// The samples at some positions, and their lengths.
struct packed_lengths {
  std::vector<std::uint64_t> samples, lengths;
};

/// Where lengths come from: called about once per window.
struct packed_source {
  std::shared_ptr<const void> self;
  /// For the positions [first, end) of an epoch. Throws if a length cannot be had.
  void (*read)(const void* self, std::uint64_t epoch, std::uint64_t first, std::uint64_t end,
               packed_lengths& into) = nullptr;
  std::uint64_t positions = 0;
};

/// The rows of an epoch: those before each window, and at last those of all.
struct packed_table {
  struct mark {
    std::uint64_t rows = 0, pieces = 0, capacity = 0;
  };
  std::vector<mark> marks;
  std::optional<costly_sample> too_long;  // the rows end before its window
  std::exception_ptr failure;             // thrown by the length of a sample; the rows end before its window

  [[nodiscard]] std::uint64_t rows() const noexcept { return marks.back().rows; }
  [[nodiscard]] bool fails() const noexcept { return too_long || failure; }
  /// The window of a row.
  [[nodiscard]] std::size_t window_of(std::uint64_t row) const noexcept;
};

/// Packs the windows of epochs. Thread-safe.
class packed_windows {
 public:
  /// Throws `error(errc::argument)` for options that no row can have.
  packed_windows(packed_source from, packed_facts facts, std::uint64_t seed);
  packed_windows(const packed_windows&) = delete;
  packed_windows& operator=(const packed_windows&) = delete;
  ~packed_windows();

  /// The rows of an epoch, from one pass over it; `of_all` is the number of rows in a step.
  [[nodiscard]] std::shared_ptr<const packed_table> table(std::uint64_t epoch, std::uint64_t of_all,
                                                          const std::atomic<bool>* stop) const;
  /// One window. The last few are kept.
  [[nodiscard]] std::shared_ptr<const packed_window> window(std::uint64_t epoch, std::uint64_t number,
                                                            std::uint64_t capacity) const;
  /// About so many samples are in so many rows.
  [[nodiscard]] std::uint64_t usual_samples(std::uint64_t rows) const;

  /// Samples have other lengths than in the pass over the epoch.
  [[noreturn, gnu::cold]] void refuse_changed() const;
  [[nodiscard]] const packed_facts& facts() const noexcept { return facts_; }
  /// The position with which a window begins.
  [[nodiscard]] std::uint64_t first_of(std::uint64_t window) const noexcept {
    return window * facts_.options.window;
  }

 private:
  class builder;
  struct kept {
    std::uint64_t epoch = 0, number = 0, capacity = 0;
    std::shared_ptr<const packed_window> made;
  };
  struct cache {
    std::mutex guard;
    std::vector<std::unique_ptr<packed_window>> unused;  // whose memory the next ones get
    std::array<kept, 8> windows;                         // the last ones, in turn
    std::size_t next = 0;
    std::unique_ptr<builder> idle;                                             // if no thread packs a window
    std::vector<std::pair<std::uint64_t, epoch_tables<packed_table>>> tables;  // by rows of a step
  };

  [[nodiscard]] packed_table passed(std::uint64_t epoch, std::uint64_t of_all,
                                    const std::atomic<bool>* stop) const;
  [[nodiscard]] std::uint64_t capacity_at(position step) const;

  packed_source from_;
  packed_facts facts_;
  std::uint64_t seed_;
  std::shared_ptr<cache> cache_;
};

/// An `epoch_cut` of packed rows, for one rank.
class packed_epoch {
 public:
  packed_epoch(std::shared_ptr<const packed_windows> windows, std::shared_ptr<const packed_table> table,
               std::uint64_t epoch, const row_batches& batches, std::uint64_t world, std::uint64_t rank);

  [[nodiscard]] std::uint64_t steps() const noexcept;
  /// Samples in the steps before a step; each piece of a split one counts.
  [[nodiscard]] std::uint64_t before(std::uint64_t step) const;
  [[nodiscard]] std::uint64_t count(std::uint64_t step) const { return before(step + 1) - before(step); }
  [[nodiscard]] step_view at(std::uint64_t step) const;
  void list(std::uint64_t step, std::vector<std::uint64_t>& into) const;
  void pack(std::uint64_t step, packed_step& into) const;
  void check() const {
    if (table_->fails()) refuse();
  }
  /// Rows are the same on any number of ranks, and each has a sample. If their length changes from step to
  /// step, they depend on how many are in a step.
  [[nodiscard]] bool elastic() const noexcept { return !windows_->facts().capacity.changes(); }

 private:
  struct rank_step {
    bool there = false;
    std::uint64_t number = 0;
    std::vector<std::uint64_t> rows;       // numbers in the epoch
    std::vector<std::uint64_t> positions;  // of their documents
    packed_step packed;
  };
  struct cache {
    std::mutex guard;
    std::array<rank_step, 4> steps;  // the last ones, in turn
    std::size_t next = 0;
  };

  /// Rows of a step, over all ranks.
  [[nodiscard]] std::uint64_t first_row(std::uint64_t step) const noexcept;
  /// Calls `f(rank_step)` with this rank's part of a step.
  void with_mine(std::uint64_t step, const auto& f) const;
  void make(std::uint64_t step, rank_step& made) const;
  [[nodiscard]] std::shared_ptr<const packed_window> window(std::size_t number) const;
  /// A row at a time; keeps its window.
  class row_reader;
  void deal(std::uint64_t first, std::uint64_t count, std::vector<std::uint64_t>& mine) const;
  [[noreturn, gnu::cold]] void refuse() const;

  std::shared_ptr<const packed_windows> windows_;
  std::shared_ptr<const packed_table> table_;
  std::uint64_t epoch_;
  cut rows_;  // of rows, not of positions
  std::optional<work_weights> dealt_by_;
  std::shared_ptr<cache> cache_{new cache()};
};

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/order/detail/packed_windows.ipp>
#endif
