// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/fixed_array.hpp>
#include <penstock/core/compiled.hpp>

#include <atomic>

namespace penstock::inline v0_1 {

namespace detail {

/// Tells the processor that this thread is spinning.
inline void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();  // including <immintrin.h> would take a tenth of a program's compile time
#endif
}

}  // namespace detail

/// Whether a ring was stopped; worker loops check it once per slot.
class stop_view {
 public:
  stop_view() = default;
  explicit stop_view(const std::atomic<bool>& flag) noexcept : flag_(&flag) {}

  [[nodiscard]] bool stopped() const noexcept { return flag_->load(std::memory_order_relaxed); }
  [[nodiscard]] const std::atomic<bool>& flag() const noexcept { return *flag_; }
  /// Like `stopped`, but sequentially consistent, for loops around words that others wait on.
  [[nodiscard]] bool stopped_for_sure() const noexcept { return flag_->load(std::memory_order_seq_cst); }

 private:
  const std::atomic<bool>* flag_ = nullptr;
};

/// Another way for finished blocks to reach the consumer, in place of the words `ready`: called once or twice
/// a block. All null: there is none.
struct block_delivery {
  void* self = nullptr;
  void (*put)(void*, std::uint64_t s) noexcept = nullptr;         ///< a worker: block s is finished
  bool (*is_ready)(void*, std::uint64_t s) noexcept = nullptr;    ///< consumer
  bool (*wait_ready)(void*, std::uint64_t s) noexcept = nullptr;  ///< consumer; false if stopped
  void (*stop)(void*) noexcept = nullptr;                         ///< any thread, any number of times
  void (*destroy)(void*) noexcept = nullptr;

  using maker = block_delivery (*)(std::size_t blocks, unsigned spins);
  /// Calls a class that has these functions as members, and a constructor for so many blocks and spins.
  template <class Delivery>
  static block_delivery make(std::size_t blocks, unsigned spins) {
    return {new Delivery(blocks, spins),
            [](void* d, std::uint64_t s) noexcept { static_cast<Delivery*>(d)->put(s); },
            [](void* d, std::uint64_t s) noexcept { return static_cast<Delivery*>(d)->is_ready(s); },
            [](void* d, std::uint64_t s) noexcept { return static_cast<Delivery*>(d)->wait_ready(s); },
            [](void* d) noexcept { static_cast<Delivery*>(d)->stop(); },
            [](void* d) noexcept { delete static_cast<Delivery*>(d); }};
  }
};

/// The protocol by which workers and one consumer share a ring of blocks; it does not know what the blocks
/// contain.
///
/// Block r of R holds the sequence numbers s with s mod R = r; the work on a block is g grains.
///   ticket    a worker takes the next one: s = t / g, grain = t mod g. Tickets are issued in order: a
///             thread that waits for a later block never holds an earlier one, so there is no deadlock, even
///             with one block.
///   sequence[r] the consumer stores the word of s once everything that workers read in the block is prepared
///             and the block's last batch has been returned. A worker waits for equality.
///   done[r]   counts finished grains; the thread that finishes the last one resets it, then publishes
///             `ready`. Where a block has more pieces than grains, the consumer begins below 0.
///   ready[r]  the word of s: the block may be delivered. The consumer waits for it.
/// Stop is a flag and the word STOP in every `sequence` and `ready`. Flag and words are sequentially
/// consistent, because a store of the consumer may overwrite STOP: it checks the flag afterwards. The words
/// of one block do not repeat within 2^32 rounds, so a wait misses nothing. Cost: one atomic increment each
/// of ticket and done per grain, and two stores per block.
class ring {
 public:
  /// `spins`: how often a waiting thread looks before it parks. High where every thread has its own
  /// processor, 0 where threads share processors.
  /// `delivery` makes another way for finished blocks to reach the consumer; null: there is none.
  ring(std::size_t blocks, std::uint64_t grains, unsigned spins, block_delivery::maker delivery = nullptr);
  ring(const ring&) = delete;
  ring& operator=(const ring&) = delete;
  ~ring() {
    if (delivery_.self != nullptr) delivery_.destroy(delivery_.self);
  }

  [[nodiscard]] std::size_t blocks() const noexcept { return blocks_; }
  [[nodiscard]] std::uint64_t grains() const noexcept { return grains_; }
  [[nodiscard]] bool stopped() const noexcept { return stop_.load(std::memory_order_relaxed); }
  [[nodiscard]] stop_view stop_state() const noexcept { return stop_view(stop_); }

  /// Consumer: lets workers start on block s.
  void open(std::uint64_t s) noexcept;
  /// Consumer, before it opens block s: the block has so many pieces beyond its grains; see `dear_slots`.
  /// Nobody touches `done` between the last piece of a block and the first of the next one here.
  void expect_more(std::uint64_t s, std::uint32_t pieces) noexcept {
    slots_[s % blocks_].done.store(0u - pieces, std::memory_order_relaxed);
  }
  /// A worker: a piece of block s that is no grain is finished. May be the last one, and finish the block.
  void finish_piece(auto& work, std::uint64_t s) noexcept { finish_grain(work, slots_[s % blocks_], s); }
  /// A worker with a grain of block s, which will finish later: so many pieces are finished.
  void count_pieces(std::uint64_t s, std::uint32_t pieces) noexcept {
    slots_[s % blocks_].done.fetch_add(pieces, std::memory_order_acq_rel);
  }
  /// The ticket that a worker gets next, about.
  [[nodiscard]] std::uint64_t next_ticket() const noexcept { return ticket_.load(std::memory_order_relaxed); }

  /// Consumer: whether block s is finished; does not wait.
  [[nodiscard]] bool is_ready(std::uint64_t s) const noexcept {
    if (delivery_.self != nullptr) return delivery_.is_ready(delivery_.self, s);
    return slots_[s % blocks_].ready.load(std::memory_order_acquire) == word(s);
  }
  /// Consumer: waits for block s; false if the ring was stopped.
  [[nodiscard]] bool wait_ready(std::uint64_t s) const noexcept {
    if (delivery_.self != nullptr) return delivery_.wait_ready(delivery_.self, s);
    return wait(slots_[s % blocks_].ready, word(s));
  }

  /// Ends all waiting, now and later. Any thread, any number of times.
  void stop() noexcept;

  /// A worker's main loop: takes grains until the ring is stopped. Calls `work.evaluate(s, grain)` and, once
  /// per block, `work.finish(s)`; both must not throw. Calls `work.waiting(true)` and `work.waiting(false)`
  /// around a wait for room; in `work.rest()` the worker holds no ticket and may wait as long as it likes.
  void serve(auto& work) noexcept {
    while (true) {
      work.rest();
      if (stopped()) return;
      const std::uint64_t ticket = ticket_.fetch_add(1, std::memory_order_relaxed);
      const std::uint64_t s = ticket / grains_;
      slot& block = slots_[s % blocks_];
      if (block.sequence.load(std::memory_order_acquire) != word(s)) {
        work.waiting(true);
        const bool go = wait(block.sequence, word(s));
        work.waiting(false);
        if (!go) return;
      }
      work.evaluate(s, ticket % grains_);
      if (stopped()) return;
      finish_grain(work, block, s);
    }
  }

  /// Consumer without workers: evaluates block s itself.
  void serve_here(auto& work, std::uint64_t s) noexcept {
    slot& block = slots_[s % blocks_];
    for (std::uint64_t grain = 0; grain < grains_; ++grain) {
      work.evaluate(s, grain);
      if (stopped()) return;
      finish_grain(work, block, s);
    }
    static_cast<void>(is_ready(s));  // so that a delivery does not keep what nobody waits for
  }

 private:
  static constexpr std::uint32_t stop_word = 0xffffffffu;

  struct slot {
    alignas(64) std::atomic<std::uint32_t> sequence{0};
    alignas(64) std::atomic<std::uint32_t> ready{0};
    alignas(64) std::atomic<std::uint32_t> done{0};
  };

  [[nodiscard]] static std::uint32_t word(std::uint64_t s) noexcept {
    return static_cast<std::uint32_t>(s % 0xfffffff0u) + 1;  // never 0, never STOP
  }

  [[nodiscard]] bool wait(const std::atomic<std::uint32_t>& where, std::uint32_t wanted) const noexcept;

  void finish_grain(auto& work, slot& block, std::uint64_t s) noexcept {
    if (block.done.fetch_add(1, std::memory_order_acq_rel) + 1 != grains_) return;
    block.done.store(0, std::memory_order_relaxed);
    work.finish(s);
    if (delivery_.self != nullptr) return delivery_.put(delivery_.self, s);
    block.ready.store(word(s), std::memory_order_seq_cst);
    if (stop_.load(std::memory_order_seq_cst)) block.ready.store(stop_word, std::memory_order_seq_cst);
    block.ready.notify_one();
  }

  std::size_t blocks_;
  std::uint64_t grains_;
  unsigned spins_;
  alignas(64) std::atomic<std::uint64_t> ticket_{0};
  alignas(64) std::atomic<bool> stop_{false};
  detail::fixed_array<slot> slots_;
  block_delivery delivery_;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/run/engine/workers/ring.ipp>
#endif
