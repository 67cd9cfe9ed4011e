// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/position.hpp>
#include <penstock/run/bad/bad_slot.hpp>
#include <penstock/run/block/row_origins.hpp>
#include <penstock/run/block/slot_memory.hpp>
#include <penstock/run/feed/placement.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

/// What the ring hands round, and the pool that it comes from.
namespace penstock::inline v0_1 {

/// The facts of a block: of one or more batches, or of a chunk of samples on the way to batches. Prepared by
/// the consumer, filled by workers, handed on in parts, given back when all parts are, used again. Its
/// memory, of types that the plan has, is in `block_of`.
struct block : placement {
  block();
  block(const block&) = delete;
  block& operator=(const block&) = delete;
  ~block();

  static constexpr std::uint64_t no_slot = std::numeric_limits<std::uint64_t>::max();

  std::vector<std::uint32_t> sources;  // chunks: the slot each row came from
  std::uint64_t rows = 0;              // chunks: how many rows there are
  std::vector<std::uint64_t> after;    // chunks of a forward source: where its front stands behind them
  row_origins gathered;                // batches made of chunks: where each row came from
  std::uint64_t grain_slots = 1;       // slots that a worker takes at a time
  bool transferred = false;
  bool from_batches = false;  // of the pool of gathered batches, not of the engine's

  std::atomic<std::uint32_t> shares{0};  // handles out, and parts not handed out yet
  shared<void> owner;                    // keeps the pool alive while there are shares

  std::mutex lock;
  std::uint64_t bad_slot = no_slot;
  std::exception_ptr what;
  bad_slots bad;

  /// Adds where `count` rows of a chunk came from, which become as many rows of a batch: without a branch
  /// where its positions follow each other.
  void add_positions(row_origins& all, std::uint64_t first_row, std::uint64_t count) const;
  /// Adds where a row of a chunk came from that is put into the last row of a batch, with what is there.
  void add_to_last(row_origins& all, std::uint64_t row) const {
    all.add_to_last({epoch, index(sources[static_cast<std::size_t>(row)])});
  }
  /// Gives up `n` shares; true when they were the last.
  [[nodiscard]] bool release(std::uint32_t n) noexcept {
    return shares.fetch_sub(n, std::memory_order_acq_rel) == n;
  }
  void clear_failure() noexcept;
  /// Keeps the failure of the lowest slot.
  void fail(std::uint64_t slot, std::exception_ptr failure) noexcept;
  /// Keeps a bad sample that the run goes on without.
  void note_bad(const penstock::bad_slot& one);
};

/// A block with its memory: columns, and what a copy to the device keeps; and with the orders of its
/// positions, bound.
template <class Columns, class Binding, class Transfer>
struct block_of : block {
  template <class Session>
  block_of(Session& session, memory_account& account) : columns(session, account) {}

  Binding binding;  // of the order chain, for the positions in here
  Columns columns;
  Transfer transfer;
};

/// Blocks that are free, the one used last on top (its memory is still in the cache). Any thread gives back,
/// the consumer takes.
class block_pool {
 public:
  /// Makes room to hold `most`, so that giving back never allocates. `destroy` ends one.
  block_pool(std::size_t most, void (*destroy)(block*) noexcept);
  block_pool(const block_pool&) = delete;
  block_pool& operator=(const block_pool&) = delete;
  ~block_pool();

  [[nodiscard]] std::size_t most() const noexcept { return most_; }
  [[nodiscard]] std::size_t made() const noexcept { return all_.size(); }
  [[nodiscard]] bool has_free();
  [[nodiscard]] std::size_t out();

  /// A free one, or null.
  [[nodiscard]] block* take();
  /// A new one, which `make` makes; the caller has looked at `made()` and `most()`.
  template <class Make>
  auto* make(Make make) {
    all_.push_back(nullptr);  // first, so that nothing is lost where this throws
    try {
      auto* const made = make();
      all_.back() = made;
      return made;
    } catch (...) {
      all_.pop_back();
      throw;
    }
  }
  void give_back(block* b) noexcept;
  /// Shows the free ones that would be taken last, as many as there are blocks beyond `wanted`.
  template <class See>
  void see_surplus(std::size_t wanted, See see) {
    const std::lock_guard guard(lock_);
    const std::size_t surplus = all_.size() > wanted ? all_.size() - wanted : 0;
    for (std::size_t i = 0; i < surplus && i < free_.size(); ++i) see(*free_[i]);
  }

 private:
  std::size_t most_;
  void (*destroy_)(block*) noexcept;
  std::mutex lock_;
  std::vector<block*> all_;  // these are owned
  std::vector<block*> free_;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/run/block/block.ipp>
#endif
