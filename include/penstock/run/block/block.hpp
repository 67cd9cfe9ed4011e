// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/position.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/run/bad/bad_slot.hpp>
#include <penstock/run/block/slot_memory.hpp>
#include <penstock/run/feed/placement.hpp>

#include <atomic>
#include <exception>
#include <limits>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

/// The blocks that the ring passes around, and the pool that they come from.
namespace penstock::inline v0_1 {

namespace detail {

/// A batch that holds no memory was asked for its samples.
[[noreturn, gnu::cold]] void refuse_empty_batch();

}  // namespace detail

/// Where the rows of a gathered batch came from: each from one position, or from several if samples were
/// combined.
///
/// Rows are appended in order. While each has a single origin this is just a list of positions; the first row
/// with a second origin adds 8 bytes per row.
class row_origins {
 public:
  void clear() noexcept;
  [[nodiscard]] bool empty() const noexcept { return positions_.empty(); }
  [[nodiscard]] std::size_t rows() const noexcept { return one_each() ? positions_.size() : ends_.size(); }
  /// Whether every row has exactly one origin.
  [[nodiscard]] bool one_each() const noexcept { return ends_.empty(); }
  /// The origins of all rows, row by row.
  [[nodiscard]] const std::vector<position>& all() const noexcept { return positions_; }
  /// The origins of a row, at least one, in the order in which they were added.
  [[nodiscard]] std::span<const position> of(std::size_t row) const noexcept;

  /// The first of them.
  [[nodiscard]] position first_of(std::size_t row) const noexcept {
    return positions_[row == 0 || one_each() ? row : ends_[row - 1]];
  }

  void reserve(std::size_t rows);
  /// Appends `count` rows of one origin each; write their positions where the result points.
  [[nodiscard]] position* add_rows(std::size_t count);
  /// Gives the last row another origin.
  void add_to_last(position origin);

 private:
  void add_ends(std::size_t count);

  std::vector<position> positions_;
  std::vector<std::size_t> ends_;  // the end of each row's origins; empty while every row has one
};

/// What is known about a block: of one or more batches, or of a chunk of samples on the way to batches. The
/// consumer prepares it, workers fill it, and it is delivered in parts; it is returned to the pool when every
/// part has been, and reused. Its memory, whose types depend on the plan, is in `block_of`.
struct block : placement {
  block();
  block(const block&) = delete;
  block& operator=(const block&) = delete;
  ~block();

  static constexpr std::uint64_t no_slot = std::numeric_limits<std::uint64_t>::max();

  std::vector<std::uint32_t> sources;     // chunks: the slot each row came from
  std::uint64_t rows = 0;                 // chunks: the number of rows
  std::vector<std::uint64_t> after;       // chunks of a forward source: the position of its front after them
  row_origins gathered;                   // batches made of chunks: where each row came from
  std::uint64_t grain_slots = 1;          // slots that a worker takes at a time
  std::uint64_t room = 0;                 // slots to have memory for, if more than it holds
  std::atomic<std::uint64_t> work_ns{0};  // that workers spent on it
  bool transferred = false;
  bool from_batches = false;  // from the pool of gathered batches, not from the engine's

  std::atomic<std::uint32_t> shares{0};  // handles held, and parts not delivered yet
  shared<void> owner;                    // keeps the pool alive while there are shares

  std::mutex lock;
  std::uint64_t bad_slot = no_slot;
  std::exception_ptr what;
  bad_slots bad;
  std::atomic<std::uint64_t> warnings{0};  // of the stages, for these samples

  /// Appends the origins of `count` rows of a chunk, which become as many rows of a batch; branch-free where
  /// the chunk's positions are consecutive.
  void add_positions(row_origins& all, std::uint64_t first_row, std::uint64_t count) const;
  /// Adds the origins of a chunk's row that is combined into the last row of a batch.
  void add_to_last(row_origins& all, std::uint64_t row) const {
    all.add_to_last({epoch, index(sources[detail::to_size(row)])});
  }
  /// Gives up `n` shares; true when they were the last.
  [[nodiscard]] bool release(std::uint32_t n) noexcept {
    return shares.fetch_sub(n, std::memory_order_acq_rel) == n;
  }
  void clear_failure() noexcept;
  /// Keeps the failure of the lowest slot.
  void fail(std::uint64_t slot, std::exception_ptr failure) noexcept;
  /// In a handler: keeps the exception being handled, unless a lower slot failed, as an `error` that names
  /// the position; one of another type as a `nested_error` that names the stage, too.
  void fail_at(std::uint64_t slot, position at, std::string_view stage) noexcept;
  /// Records a bad sample that the run tolerates.
  void note_bad(const penstock::bad_slot& one);
};

/// A block with its memory: the columns, the state of a copy to the device and of the work there, and the
/// orders of its positions, bound.
template <class Columns, class Binding, class Transfer, class Work>
struct block_of : block {
  template <class Session>
  block_of(Session& session, memory_account& account) : columns(session, account), work(session, account) {}

  Binding binding;  // of the order chain, for the positions of this block
  Columns columns;
  [[no_unique_address]] Work work;  // of the operations on the device; outlived by the copy that reads it
  Transfer transfer;
};

/// Free blocks. The last one used is taken first, because its memory is still in the cache, or the one that
/// has been free for longest, because the device may still use the memory of the others. Any thread returns
/// blocks; only the consumer takes them.
class block_pool {
 public:
  /// Reserves room for `maximum` blocks, so that returning one never allocates. `destroy` destroys a block.
  block_pool(std::size_t maximum, void (*destroy)(block*) noexcept, bool oldest_first = false);
  block_pool(const block_pool&) = delete;
  block_pool& operator=(const block_pool&) = delete;
  ~block_pool();

  [[nodiscard]] std::size_t maximum() const noexcept { return limit_; }
  [[nodiscard]] std::size_t made() const noexcept { return all_.size(); }
  [[nodiscard]] std::size_t out();

  [[nodiscard]] block* take();
  /// A new block, created by `make`; the caller has checked `made()` against `maximum()`.
  template <class Make>
  auto* make(Make make) {
    auto* const made = make();
    add(made);
    return made;
  }
  void give_back(block* b) noexcept;
  void see_free(auto see) {
    const std::lock_guard guard(lock_);
    for (block* const one : free_) see(*one);
  }
  /// Passes to `see` the free blocks that would be taken last: as many as there are blocks beyond `wanted`.
  void see_surplus(std::size_t wanted, auto see) {
    const std::lock_guard guard(lock_);
    const std::size_t surplus = all_.size() > wanted ? all_.size() - wanted : 0;
    for (std::size_t i = 0; i < surplus && i < free_.size(); ++i) see(*free_[i]);
  }

 private:
  void add(block* made) noexcept;

  std::size_t limit_;
  void (*destroy_)(block*) noexcept;
  bool oldest_first_;
  std::mutex lock_;
  std::vector<block*> all_;  // owned
  std::vector<block*> free_;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/run/block/block.ipp>
#endif
