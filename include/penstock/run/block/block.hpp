// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/position.hpp>
#include <penstock/order/cut.hpp>
#include <penstock/run/bad/bad_slot.hpp>
#include <penstock/run/block/column_set.hpp>

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

/// One batch in a block: which of its rows, and which positions they hold. A block of numbers holds many
/// small batches.
struct batch_part {
  step_view view;
  std::uint64_t first = 0;   // row of the block
  std::uint64_t slots = 0;   // rows
  std::uint64_t valid = 0;   // of them with a sample; they come first
  std::uint64_t global = 0;  // samples of the global step
  position delivered;        // epoch and step as the consumer counts them

  batch_part() noexcept {}  // `= default` would fill the unused tables of the view with zeros
  /// A whole step without lanes: positions from `base` on, and nothing to compute.
  batch_part(std::uint64_t base, std::uint64_t row, std::uint64_t count, std::uint64_t of_all,
             position place) noexcept
      : view(base, count), first(row), slots(count), valid(count), global(of_all), delivered(place) {}

  /// Whether the next one's rows and positions go on where this one's end.
  [[nodiscard]] bool continues_in(const batch_part& next) const noexcept {
    return view.contiguous() && next.view.contiguous() && valid == slots && next.valid != 0 &&
           next.first == first + slots && next.view.base() == view.base() + slots;
  }
};

/// Which positions stand in the rows of a block. Prepared by the consumer before workers may look.
template <class Binding>
struct placement {
  Binding binding;                     // of the order chain, for the positions in here
  std::vector<batch_part> parts;       // batches; a chunk has one part
  std::vector<std::uint64_t> indices;  // positions one by one, where a cursor chose them
  bool listed = false;
  std::uint64_t epoch = 0;  // of the positions
  std::uint64_t slots = 0;  // rows of all parts
  bool last = false;        // chunks: the last one of its pass

  /// The position index in a row.
  [[nodiscard]] std::uint64_t index(std::uint64_t row) const {
    if (listed) return indices[static_cast<std::size_t>(row)];
    std::size_t i = 0;
    while (i + 1 < parts.size() && row >= parts[i + 1].first) ++i;
    return parts[i].view[row - parts[i].first];
  }
};

/// The memory and the facts of a block: of one or more batches, or of a chunk of samples on the way to
/// batches. Prepared by the consumer, filled by workers, handed on in parts, given back when all parts are,
/// used again.
template <class Columns, class Binding, class Transfer, class Bad = no_bad_slots>
struct payload : placement<Binding> {
  template <class Session>
  payload(Session& session, memory_account& account) : columns(session, account) {}

  static constexpr std::uint64_t no_slot = std::numeric_limits<std::uint64_t>::max();

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
    const std::uint64_t of_epoch = this->epoch;
    if (!this->listed && this->parts[0].view.contiguous()) {
      const std::uint64_t first = this->index(0);
      for (std::size_t i = 0; i < n; ++i) into[i] = {of_epoch, first + from_slots[i]};
    } else {
      for (std::size_t i = 0; i < n; ++i) into[i] = {of_epoch, this->index(from_slots[i])};
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
