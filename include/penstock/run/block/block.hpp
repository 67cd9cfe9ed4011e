// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/position.hpp>
#include <penstock/run/bad/bad_slot.hpp>
#include <penstock/run/block/column_set.hpp>
#include <penstock/run/feed/placement.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

/// What a block of the ring works on, and the pool it comes from.
namespace penstock::inline v0_1 {

/// The memory and the facts of a block: of one or more batches, or of a chunk of samples on the way to
/// batches. Prepared by the consumer, filled by workers, handed on in parts, given back when all parts are,
/// used again.
template <class Columns, class Binding, class Transfer, class Bad = no_bad_slots>
struct payload : placement {
  template <class Session>
  payload(Session& session, memory_account& account) : columns(session, account) {}

  static constexpr std::uint64_t no_slot = std::numeric_limits<std::uint64_t>::max();

  Binding binding;  // of the order chain, for the positions in here
  Columns columns;
  std::vector<std::uint32_t> sources;  // chunks: the slot each row came from
  std::uint64_t rows = 0;              // chunks: how many rows there are
  std::vector<std::uint64_t> after;    // chunks of a forward source: where its front stands behind them
  std::vector<position> gathered;      // batches made of chunks: where each row came from
  Transfer transfer;
  bool transferred = false;
  bool from_batches = false;  // of the pool of gathered batches, not of the engine's

  std::atomic<std::uint32_t> shares{0};  // handles out, and parts not handed out yet
  std::shared_ptr<void> owner;           // keeps the pool alive while there are shares

  /// Adds where `count` rows of a chunk came from: without a branch where its positions follow each other.
  void add_positions(std::vector<position>& all, std::uint64_t first_row, std::uint64_t count) const {
    const std::size_t filled = all.size(), n = static_cast<std::size_t>(count);
    const std::uint32_t* const from_slots = sources.data() + first_row;
    all.resize(filled + n);
    position* const into = all.data() + filled;
    const std::uint64_t of_epoch = epoch;
    if (!listed && parts[0].view.contiguous()) {
      const std::uint64_t first = index(0);
      for (std::size_t i = 0; i < n; ++i) into[i] = {of_epoch, first + from_slots[i]};
    } else {
      for (std::size_t i = 0; i < n; ++i) into[i] = {of_epoch, index(from_slots[i])};
    }
  }

  /// Gives up `n` shares; true when they were the last.
  [[nodiscard]] bool release(std::uint32_t n) noexcept {
    return shares.fetch_sub(n, std::memory_order_acq_rel) == n;
  }

  void clear_failure() noexcept {
    bad_slot = no_slot;
    what = nullptr;
    bad.clear();
  }
  /// Keeps the failure of the lowest slot.
  void fail(std::uint64_t slot, std::exception_ptr failure) noexcept {
    const std::lock_guard guard(lock);
    if (slot >= bad_slot) return;
    bad_slot = slot;
    what = std::move(failure);
  }

  /// Keeps a bad sample that the run goes on without.
  void note_bad(const penstock::bad_slot& one) {
    const std::lock_guard guard(lock);
    bad.add(one);
  }

  std::mutex lock;
  std::uint64_t bad_slot = no_slot;
  std::exception_ptr what;
  [[no_unique_address]] Bad bad;
};

/// Payloads that are free, the one used last on top (its memory is still in the cache). Any thread gives
/// back, the consumer takes.
template <class Payload>
class payload_pool {
 public:
  /// Makes room to hold `most`, so that giving back never allocates.
  explicit payload_pool(std::size_t most) : most_(most) {
    all_.reserve(most);
    free_.reserve(most);
  }
  payload_pool(const payload_pool&) = delete;
  payload_pool& operator=(const payload_pool&) = delete;
  ~payload_pool() {
    for (Payload* const one : all_) delete one;
  }

  [[nodiscard]] std::size_t most() const noexcept { return most_; }
  [[nodiscard]] std::size_t made() const noexcept { return all_.size(); }
  [[nodiscard]] bool has_free() {
    const std::lock_guard guard(lock_);
    return !free_.empty();
  }
  [[nodiscard]] std::size_t out() {
    const std::lock_guard guard(lock_);
    return all_.size() - free_.size();
  }

  /// A free one, or null.
  Payload* take() {
    const std::lock_guard guard(lock_);
    if (free_.empty()) return nullptr;
    Payload* top = free_.back();
    free_.pop_back();
    return top;
  }
  /// A new one; the caller has looked at `made()` and `most()`.
  template <class... Args>
  Payload* make(Args&&... args) {
    all_.push_back(nullptr);  // first, so that nothing is lost where this throws
    try {
      return all_.back() = new Payload(std::forward<Args>(args)...);
    } catch (...) {
      all_.pop_back();
      throw;
    }
  }
  void give_back(Payload* p) noexcept {
    const std::lock_guard guard(lock_);
    free_.push_back(p);
  }

 private:
  std::size_t most_;
  std::mutex lock_;
  std::vector<Payload*> all_;  // these are owned
  std::vector<Payload*> free_;
};

}  // namespace penstock::inline v0_1
