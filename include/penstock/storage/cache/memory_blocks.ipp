// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/cache/memory_blocks.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <new>

namespace penstock::inline v0_1::detail::blocks {

PENSTOCK_INLINE memory_blocks::memory_blocks(std::uint64_t limit, std::uint64_t block, eviction evict)
    : block_(block),
      count_(slots_within(limit, block)),
      plans_(evict == eviction::belady),
      touches_(evict != eviction::fifo) {
  const auto refusal = [&] {
    return error(errc::argument, {"there is no memory for a memory_cache of ", limit,
                                  " bytes; lower its limit to what the machine has to spare"});
  };
  const std::size_t bytes = to_size(count_ * block_);
  void* const all = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) throw refusal();
  memory_ = static_cast<std::byte*>(all);
  try {
    slots_ = fixed_array<slot_record>(to_size(count_));
    chains_ = fixed_array<std::uint32_t>(to_size(std::bit_ceil(count_)));
  } catch (const std::bad_alloc&) {
    ::munmap(all, bytes);
    throw refusal();
  }
  (void)::madvise(all, bytes, MADV_HUGEPAGE);
  (void)::madvise(all, bytes, MADV_DONTFORK);  // a child makes blocks of its own
}
PENSTOCK_INLINE memory_blocks::~memory_blocks() { ::munmap(memory_, to_size(count_ * block_)); }

PENSTOCK_INLINE std::uint64_t memory_blocks::slots_within(std::uint64_t limit, std::uint64_t block) noexcept {
  const auto index = [](std::uint64_t slots) {
    return slots * sizeof(slot_record) + std::bit_ceil(slots) * sizeof(std::uint32_t);
  };
  // What the object itself takes, and the heap beside each part.
  constexpr std::uint64_t rest = sizeof(memory_blocks) + 128;
  if (limit < rest) return 0;
  return largest(std::min(max_slots, (limit - rest) / block),
                 [&](std::uint64_t slots) { return index(slots) <= limit - rest - slots * block; });
}
PENSTOCK_INLINE bool memory_blocks::has(const key& what, std::atomic<std::uint32_t>& hint) noexcept {
  if (find(what, hint)) return true;
  const std::scoped_lock lock(mutex_);
  const auto known = slot_of(what);
  if (!known || phase_of(slots_[*known].word.load(std::memory_order_relaxed)) != phase::full) return false;
  hint.store(*known + 1, std::memory_order_relaxed);
  return true;
}

PENSTOCK_INLINE memory_blocks::answer memory_blocks::ask(const key& what,
                                                         std::atomic<std::uint32_t>& hint) noexcept {
  const std::scoped_lock lock(mutex_);
  if (const auto known = slot_of(what)) {
    const slot_record& one = slots_[*known];
    const std::uint64_t word = one.word.load(std::memory_order_relaxed);
    if (phase_of(word) == phase::full) {
      hint.store(*known + 1, std::memory_order_relaxed);
      return {answer::here, *known};
    }
    if (one.in_vain) return {};
    return {answer::other, *known, word};
  }
  constexpr int max_tries = 100;
  for (int tries = 0; tries < max_tries; ++tries) {
    const auto free_one = victim();
    if (!free_one) return {};
    slot_record& one = slots_[*free_one];
    std::uint64_t word = one.word.load(std::memory_order_relaxed) & ~pins;
    const phase before = phase_of(word);
    const std::uint64_t filling = with(word + one_generation, phase::filling);
    // Somebody may have pinned it just now.
    if (!one.word.compare_exchange_strong(word, filling, std::memory_order_acquire)) continue;
    if (before == phase::full) unlink(*free_one);
    one.what = what;
    one.in_vain = false;
    one.filler = std::this_thread::get_id();
    hint.store(*free_one + 1, std::memory_order_relaxed);
    std::uint32_t& first = chain(what);
    one.next = std::exchange(first, *free_one + 1);
    clock_.store(clock_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return {answer::mine, *free_one, filling, before == phase::full};
  }
  return {};
}

PENSTOCK_INLINE void memory_blocks::publish(const answer& mine) noexcept {
  slot_record& one = slots_[mine.slot];
  {
    const std::scoped_lock lock(mutex_);
    one.use.store(clock_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    one.word.store(with(mine.state, phase::full), std::memory_order_release);
  }
  changed_.notify_all();
}
PENSTOCK_INLINE void memory_blocks::give_up(const answer& mine) noexcept {
  {
    const std::scoped_lock lock(mutex_);
    unlink(mine.slot);
    slots_[mine.slot].word.store(with(mine.state, phase::free), std::memory_order_release);
  }
  changed_.notify_all();
}
PENSTOCK_INLINE bool memory_blocks::is_own(const answer& other) noexcept {
  const std::scoped_lock lock(mutex_);
  const slot_record& one = slots_[other.slot];
  return one.word.load(std::memory_order_relaxed) == other.state && one.filler == std::this_thread::get_id();
}

PENSTOCK_INLINE bool memory_blocks::wait(const answer& other, std::chrono::steady_clock::time_point late,
                                         const wait_stops& stops, wait_stops::moment begun) noexcept {
  slot_record& one = slots_[other.slot];
  std::unique_lock lock(mutex_);
  const bool in_time = changed_.wait_until(lock, late, [&] {
    return one.word.load(std::memory_order_relaxed) != other.state || one.in_vain || stops.since(begun);
  });
  if (in_time) return true;
  one.in_vain = true;
  changed_.notify_all();
  return false;
}
PENSTOCK_INLINE void memory_blocks::wake() noexcept {
  { const std::scoped_lock lock(mutex_); }
  changed_.notify_all();
}
PENSTOCK_INLINE void memory_blocks::follow(const block_plan& plan) {
  if (!plans_) return;
  const std::scoped_lock lock(mutex_);
  followed_.push_back(&plan);
}
PENSTOCK_INLINE void memory_blocks::leave(const block_plan& plan) noexcept {
  const std::scoped_lock lock(mutex_);
  std::erase(followed_, &plan);
}
PENSTOCK_INLINE std::uint32_t& memory_blocks::chain(const key& what) const noexcept {
  return chains_[to_size(what.low & (std::bit_ceil(count_) - 1))];
}
PENSTOCK_INLINE std::optional<std::uint32_t> memory_blocks::slot_of(const key& what) const noexcept {
  for (std::uint32_t next = chain(what); next != 0; next = slots_[next - 1].next)
    if (slots_[next - 1].what == what) return next - 1;
  return std::nullopt;
}
PENSTOCK_INLINE void memory_blocks::unlink(std::uint32_t slot) noexcept {
  std::uint32_t* link = &chain(slots_[slot].what);
  while (*link != 0 && *link != slot + 1) link = &slots_[*link - 1].next;
  if (*link != 0) *link = slots_[slot].next;
}

PENSTOCK_INLINE std::optional<std::uint32_t> memory_blocks::victim() noexcept {
  return least_needed(count_, hand_, [&](std::uint32_t slot) -> std::optional<candidate> {
    const slot_record& one = slots_[slot];
    const std::uint64_t word = one.word.load(std::memory_order_relaxed);
    if (phase_of(word) == phase::free) return candidate{};
    if (phase_of(word) == phase::filling || (word & pins) != 0) return std::nullopt;
    return candidate{one.use.load(std::memory_order_relaxed), distance(one.what)};
  });
}
PENSTOCK_INLINE std::uint64_t memory_blocks::distance(const key& what) const noexcept {
  std::uint64_t least = next_uses::farthest;
  for (const block_plan* const one : followed_) least = std::min(least, one->distance(what));
  return least;
}

}  // namespace penstock::inline v0_1::detail::blocks
