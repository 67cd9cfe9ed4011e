// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/engine/workers/dear_slots.hpp>

#include <bit>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE void dear_slots::publish(std::uint64_t s, std::span<const dear_slot> slots) noexcept {
  place& at = places_[s % blocks_];
  at.count = slots.size();
  if (slots.empty()) return;  // the word has no bits
  at.block = s;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    at.slots[i].due.store(slots[i].due, std::memory_order_relaxed);
    at.slots[i].slot.store(slots[i].slot, std::memory_order_relaxed);
  }
  waiting_.fetch_add(static_cast<std::uint32_t>(slots.size()), std::memory_order_relaxed);
  at.word.store(s << 32 | (bits >> (dear_slot::maximum - slots.size())), std::memory_order_release);
}

PENSTOCK_INLINE bool dear_slots::search(std::uint64_t ticket, claimed& it) noexcept {
  while (true) {
    place* first = nullptr;
    std::size_t which = 0;
    std::uint64_t seen = 0, least = ticket;
    for (std::size_t r = 0; r < blocks_; ++r) {
      const std::uint64_t word = places_[r].word.load(std::memory_order_acquire);
      if ((word & bits) == 0) continue;
      const auto i = static_cast<std::size_t>(std::countr_zero(word));
      const std::uint64_t due = places_[r].slots[i].due.load(std::memory_order_relaxed);
      if (due > least || (due == least && first != nullptr)) continue;
      first = &places_[r], which = i, seen = word, least = due;
    }
    if (first == nullptr) return false;
    if (!first->word.compare_exchange_strong(seen, seen & (seen - 1), std::memory_order_acq_rel)) continue;
    waiting_.fetch_sub(1, std::memory_order_relaxed);
    it = {first->block, first->slots[which].slot.load(std::memory_order_relaxed)};
    return true;
  }
}

PENSTOCK_INLINE std::uint32_t dear_slots::take(std::uint64_t s, std::uint64_t first, std::uint64_t last,
                                               others& apart) noexcept {
  place& at = places_[s % blocks_];
  std::uint32_t taken = 0;
  for (std::size_t i = 0; i < at.count; ++i) {
    const std::uint64_t slot = at.slots[i].slot.load(std::memory_order_relaxed);
    if (slot < first || slot >= last) continue;
    const std::uint64_t bit = std::uint64_t{1} << i;
    if ((at.word.fetch_and(~bit, std::memory_order_acq_rel) & bit) != 0) {
      waiting_.fetch_sub(1, std::memory_order_relaxed);
      ++taken;
    } else {
      apart.slots[apart.count++] = slot;
    }
  }
  return taken;
}

}  // namespace penstock::inline v0_1
