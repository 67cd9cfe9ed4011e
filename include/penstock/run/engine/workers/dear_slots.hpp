// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/fixed_array.hpp>
#include <penstock/core/compiled.hpp>

#include <array>
#include <atomic>
#include <span>

namespace penstock::inline v0_1 {

/// A slot of a block whose sample takes far longer than others.
struct dear_slot {
  std::uint64_t slot = 0;
  double times = 0;                           ///< so many times as long as the mean
  std::uint64_t due = 0;                      ///< the ticket before which a worker is to begin it
  static constexpr std::size_t maximum = 32;  ///< in a block
};

/// The slots of open blocks that workers begin before the turn of their grains, beside a `ring`.
///
/// A sample that takes as long as r others keeps one of W workers busy while the others do r (W - 1) of them.
/// So it is due when the workers are that many samples before it: then it is ready when they arrive there.
/// Begun later it keeps the consumer waiting; begun earlier it takes a worker away from blocks that are
/// wanted sooner. (Least laxity first, Dertouzos and Mok 1989, by tickets instead of a clock.)
///
/// One word for each block of the ring: the block's number, and a bit for each slot that nobody has begun.
///   publish   the consumer stores it, once all that workers read of the block is prepared, before it opens
///             the block; `ring::expect_more` was called, so that the block is not ready without them.
///   claim     a worker takes the lowest bit of the block with the least `due` by compare-exchange. If that
///             succeeds the block is still this one: it cannot be delivered before the slot is done, and the
///             next block of this place is published only then. So what the worker had read of the slot before
///             was of this block, too, and what the consumer prepared is visible.
///   take      who evaluates a grain takes those of its slots that are left, and passes over the others, whose
///             workers are at them. So no slot waits for a worker that rests or that has left, and nobody who
///             holds one waits for another.
/// Cost: of a block without such slots a store; of a worker a load per grain, and while some wait a load for
/// each block. Numbers repeat after 2^32 blocks, as in `ring`.
class dear_slots {
 public:
  explicit dear_slots(std::size_t blocks) : blocks_(blocks), places_(blocks) {}

  /// Consumer: the slots of block s, by `due`, at most `dear_slot::maximum`; none is a list, too.
  void publish(std::uint64_t s, std::span<const dear_slot> slots) noexcept;

  /// A slot that a worker claimed.
  struct claimed {
    std::uint64_t block = 0, slot = 0;
  };
  /// A worker that holds no ticket: claims the slot that is due first, if one is at this ticket.
  [[nodiscard]] bool claim(std::uint64_t ticket, claimed& it) noexcept {
    return waiting_.load(std::memory_order_relaxed) != 0 && search(ticket, it);
  }
  /// A worker with a grain of block s: takes what is left of its slots [first, last); returns how many. Those
  /// that others have are added to `apart`, in any order.
  struct others {
    std::array<std::uint64_t, dear_slot::maximum> slots;
    std::size_t count = 0;
  };
  [[nodiscard]] std::uint32_t take(std::uint64_t s, std::uint64_t first, std::uint64_t last,
                                   others& apart) noexcept;

 private:
  struct entry {
    std::atomic<std::uint64_t> due{0}, slot{0};  // `due` is read before a claim
  };
  struct alignas(64) place {
    std::atomic<std::uint64_t> word{0};  // the block's number, and the bits of slots not begun
    std::uint64_t block = 0;             // its number; whoever holds a slot may read it
    std::size_t count = 0;               // whoever holds a grain may read it
    std::array<entry, dear_slot::maximum> slots{};
  };
  static constexpr std::uint64_t bits = 0xffffffffu;

  [[nodiscard]] bool search(std::uint64_t ticket, claimed& it) noexcept;

  std::size_t blocks_;
  detail::fixed_array<place> places_;
  alignas(64) std::atomic<std::uint32_t> waiting_{0};  // slots not begun, about
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/run/engine/workers/dear_slots.ipp>
#endif
