// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/engine/workers/ring.hpp>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE ring::ring(std::size_t blocks, std::uint64_t grains, unsigned spins,
                           block_delivery::maker delivery)
    : blocks_(blocks), grains_(grains), spins_(spins), slots_(blocks) {
  if (delivery != nullptr) delivery_ = delivery(blocks, spins);
}

PENSTOCK_INLINE void ring::open(std::uint64_t s) noexcept {
  auto& sequence = slots_[s % blocks_].sequence;
  sequence.store(word(s), std::memory_order_seq_cst);
  if (stop_.load(std::memory_order_seq_cst)) sequence.store(stop_word, std::memory_order_seq_cst);
  sequence.notify_all();
}

PENSTOCK_INLINE void ring::stop() noexcept {
  stop_.store(true, std::memory_order_seq_cst);
  if (delivery_.self != nullptr) delivery_.stop(delivery_.self);
  for (std::size_t r = 0; r < blocks_; ++r) {
    slots_[r].sequence.store(stop_word, std::memory_order_seq_cst);
    slots_[r].sequence.notify_all();
    slots_[r].ready.store(stop_word, std::memory_order_seq_cst);
    slots_[r].ready.notify_all();
  }
}

PENSTOCK_INLINE bool ring::wait(const std::atomic<std::uint32_t>& where,
                                std::uint32_t wanted) const noexcept {
  for (unsigned i = 0; i < spins_; ++i) {
    if (where.load(std::memory_order_acquire) == wanted) return !stop_.load(std::memory_order_seq_cst);
    if (stopped()) return false;
    detail::relax();
  }
  while (true) {
    const std::uint32_t seen = where.load(std::memory_order_seq_cst);
    if (stop_.load(std::memory_order_seq_cst)) return false;
    if (seen == wanted) return true;
    where.wait(seen, std::memory_order_seq_cst);
  }
}

}  // namespace penstock::inline v0_1
