// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/position.hpp>
#include <penstock/order/cut.hpp>
#include <penstock/run/column_set.hpp>

#include <algorithm>
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

/// Which positions stand in the slots of a block. Prepared by the consumer before workers may look.
template <class Binding>
struct placement {
  Binding binding;                     // of the order chain, for the positions in here
  step_view view;                      // which they are, where a cut says it ...
  std::vector<std::uint64_t> indices;  // ... or one by one, where a cursor does
  bool listed = false;
  std::uint64_t epoch = 0;  // of the positions
  std::uint64_t slots = 0, valid = 0;
  position delivered;        // direct: the epoch and step that the consumer sees; chunks: its epoch and the first ordinal
  std::uint64_t global = 0;  // samples of the global step
  bool last = false;         // chunks: the last one of its pass

  /// The position index in a slot.
  [[nodiscard]] std::uint64_t index(std::uint64_t slot) const { return listed ? indices[static_cast<std::size_t>(slot)] : view[slot]; }
};

/// The memory and the facts of one batch (or of one chunk of samples on the way to batches). Prepared by the consumer, filled by
/// workers, handed on, given back, used again.
template <class Columns, class Binding, class Transfer>
struct payload : placement<Binding> {
  template <class Session>
  payload(Session& session, memory_account& account) : columns(session, account) {}

  static constexpr std::uint64_t no_slot = std::numeric_limits<std::uint64_t>::max();

  Columns columns;
  std::vector<std::uint32_t> sources;  // chunks: the slot each row came from
  std::uint64_t rows = 0;              // chunks: how many rows there are
  std::vector<position> gathered;      // batches made of chunks: where each row came from
  std::vector<std::uint8_t> mask;      // made when somebody asks
  Transfer transfer;
  bool transferred = false;

  void clear_failure() noexcept {
    bad_slot = no_slot;
    what = nullptr;
  }
  /// Keeps the failure of the lowest slot.
  void fail(std::uint64_t slot, std::exception_ptr failure) noexcept {
    const std::lock_guard guard(lock);
    if (slot >= bad_slot) return;
    bad_slot = slot;
    what = std::move(failure);
  }

  std::mutex lock;
  std::uint64_t bad_slot = no_slot;
  std::exception_ptr what;
};

/// Payloads that are free, the one used last on top (its memory is still in the cache). Any thread gives back, the consumer takes.
template <class Payload>
class payload_pool {
 public:
  /// Makes room to hold `most`, so that giving back never allocates.
  explicit payload_pool(std::size_t most) : most_(most) {
    all_.reserve(most);
    free_.reserve(most);
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
    all_.push_back(std::make_unique<Payload>(std::forward<Args>(args)...));
    return all_.back().get();
  }
  void give_back(Payload* p) noexcept {
    const std::lock_guard guard(lock_);
    free_.push_back(p);
  }

 private:
  std::size_t most_;
  std::mutex lock_;
  std::vector<std::unique_ptr<Payload>> all_;
  std::vector<Payload*> free_;
};

}  // namespace penstock::inline v0_1
