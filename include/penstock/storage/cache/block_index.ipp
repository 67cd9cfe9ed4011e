// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/cache/block_index.hpp>

#include <algorithm>
#include <bit>
#include <cstring>

namespace penstock::inline v0_1::detail::blocks {

PENSTOCK_INLINE std::uint64_t block_index::slots_within(std::uint64_t limit, std::uint64_t block,
                                                        std::uint64_t piece) noexcept {
  return largest(std::min(limit / block, max_slots), [&](std::uint64_t slots) {
    return bytes({block, piece, slots}) + data_head + slots * block <= limit;
  });
}
PENSTOCK_INLINE std::array<std::byte, 64> block_index::data_head_of(std::uint64_t pair) noexcept {
  std::array<std::byte, 64> made{};
  std::memcpy(made.data(), head_record::data_name.data(), head_record::data_name.size());
  std::memcpy(made.data() + 16, &version, sizeof(version));
  std::memcpy(made.data() + 24, &pair, sizeof(pair));
  return made;
}
PENSTOCK_INLINE bool block_index::is_data(const std::byte* first, std::size_t size) noexcept {
  const std::size_t known = std::min(size, head_record::data_name.size());
  return std::memcmp(first, head_record::data_name.data(), known) == 0 ||
         std::all_of(first, first + size, [](std::byte one) { return one == std::byte{}; });
}

PENSTOCK_INLINE block_index::head block_index::look(const std::byte* first, std::size_t size, shape& found,
                                                    std::uint32_t& found_version) noexcept {
  head_record one{};
  bool blank = true;
  for (std::size_t i = 0; i < size; ++i) blank = blank && first[i] == std::byte{};
  if (blank) return head::empty;
  if (size < sizeof(one)) return head::foreign;
  std::memcpy(&one, first, sizeof(one));
  if (std::string_view(one.magic, sizeof(one.magic)) != head_record::name) return head::foreign;
  found_version = one.version;
  if (one.version != version || one.order != head_record::order_mark) return head::other_version;
  if (one.ready == 0) return head::empty;
  found = {one.block, one.piece, one.slots};
  return head::ready;
}

PENSTOCK_INLINE std::array<std::byte, 80> block_index::index_head_of(const shape& what,
                                                                     std::uint64_t pair) noexcept {
  head_record made{};
  std::memcpy(made.magic, head_record::name.data(), sizeof(made.magic));
  made.version = version;
  made.order = head_record::order_mark;
  made.block = what.block;
  made.piece = what.piece;
  made.slots = what.slots;
  made.clock = 1;
  made.pair = pair;
  return std::bit_cast<std::array<std::byte, 80>>(made);
}
PENSTOCK_INLINE void block_index::make_ready() const noexcept {
  put(head_of().ready, 1u, std::memory_order_release);
}
PENSTOCK_INLINE std::uint64_t block_index::pair() const noexcept { return get(head_of().pair); }
PENSTOCK_INLINE std::optional<key> block_index::block_in(place seen) const noexcept {
  const key found = key_of(record(seen.slot));
  if (seen.now() != phase::full || !same(seen)) return std::nullopt;
  return found;
}
PENSTOCK_INLINE place block_index::look_at(std::uint32_t slot) const noexcept {
  return {slot, get(record(slot).state, std::memory_order_acquire)};
}
PENSTOCK_INLINE std::optional<place> block_index::full_of(std::uint32_t slot,
                                                          const key& what) const noexcept {
  const place seen = look_at(slot);
  if (seen.now() != phase::full || key_of(record(slot)) != what || !same(seen)) return std::nullopt;
  return seen;
}
PENSTOCK_INLINE std::uint64_t block_index::sum(std::uint32_t slot, std::uint64_t piece) const noexcept {
  return get(sum_at(slot, piece), std::memory_order_acquire);
}

PENSTOCK_INLINE void block_index::stand_at(std::uint32_t row, std::uint64_t run_row, std::uint64_t ns_per_row,
                                           next_use (*when)(const void* who, const key& block),
                                           const void* who) const {
  const next_uses uses = next();
  uses.stand_at(row, run_row, ns_per_row);
  for (std::uint32_t slot = 0; slot < shape_.slots; ++slot) {
    if (!uses.get(row, slot).is_stale(run_row)) continue;
    const place seen = look_at(slot);
    const std::optional<key> block = block_in(seen);
    if (!block) continue;
    uses.set(row, slot, when(who, *block));
    // Whoever gives the slot to another block changes its state first, and then says that nothing is known.
    if (get(record(slot).state, std::memory_order_seq_cst) != seen.state) uses.set(row, slot, {});
  }
}
PENSTOCK_INLINE void block_index::touch(std::uint32_t slot) const noexcept {
  const std::uint64_t now = get(head_of().clock);
  std::uint64_t before = get(use(slot));
  // One that is being filled meanwhile, or was freed, stays so.
  if (before != now && before != used_now && before != 0)
    std::atomic_ref(use(slot)).compare_exchange_strong(before, now, std::memory_order_relaxed);
}
PENSTOCK_INLINE std::uint32_t* block_index::word_of(std::uint32_t slot) const noexcept {
  return &record(slot).state;
}
PENSTOCK_INLINE void block_index::set_sum(std::uint32_t slot, std::uint64_t piece,
                                          std::uint64_t sum) const noexcept {
  put(sum_at(slot, piece), sum, std::memory_order_release);
}

PENSTOCK_INLINE bool block_index::publish(place mine) const noexcept {
  constexpr std::uint32_t phases = 3;
  const std::uint32_t full = (mine.state & ~phases) | static_cast<std::uint32_t>(phase::full);
  std::uint32_t expected = mine.state;
  if (!std::atomic_ref(record(mine.slot).state).compare_exchange_strong(expected, full)) return false;
  // Until here no other process takes it for the one that was used longest ago.
  put(use(mine.slot), get(head_of().clock));
  return true;
}

PENSTOCK_INLINE bool block_index::begin_change() const noexcept {
  head_record& all = head_of();
  const bool died = get(all.changing) != 0;
  if (died) rebuild();
  // Only damage makes it so large.
  if (get(all.clock) >= std::uint64_t{1} << 62) {
    put(all.clock, std::uint64_t{1});
    for (std::uint32_t slot = 0; slot < shape_.slots; ++slot)
      if (look_at(slot).now() == phase::full) settle(slot);
  }
  put(all.changing, 1u, std::memory_order_seq_cst);
  return died;
}
PENSTOCK_INLINE void block_index::end_change() const noexcept {
  put(head_of().changing, 0u, std::memory_order_seq_cst);
}

PENSTOCK_INLINE std::optional<place> block_index::find(const key& what) const noexcept {
  // A damaged file may have a chain without an end.
  std::uint64_t steps = 0;
  for (std::uint32_t next = get(chain(what)); next != 0 && steps <= shape_.slots; ++steps) {
    if (next > shape_.slots) break;
    slot_record& one = record(next - 1);
    if (key_of(one) == what) {
      const place found = look_at(next - 1);
      if (found.now() != phase::free) return found;
    }
    next = get(one.next);
  }
  return std::nullopt;
}

PENSTOCK_INLINE std::optional<place> block_index::least_needed(const outlook& future,
                                                               bool only_full) const noexcept {
  std::uint64_t hand = get(head_of().hand) % shape_.slots;
  const auto found =
      blocks::least_needed(shape_.slots, hand, [&](std::uint32_t slot) -> std::optional<candidate> {
        const std::uint64_t one = get(use(slot));
        if (one == used_now || (one == 0 && only_full)) return std::nullopt;
        return candidate{one, one == 0 ? 0 : future.distance(slot)};
      });
  put(head_of().hand, hand);
  if (!found) return std::nullopt;
  return look_at(*found);
}

PENSTOCK_INLINE place block_index::take(std::uint32_t slot, const key& what) const noexcept {
  unlink(slot);  // a free one, too: after damage it may be in a chain
  const place made = set_state(slot, phase::filling);
  put(use(slot), used_now);
  slot_record& one = record(slot);
  put(one.high, what.high, std::memory_order_release);
  put(one.low, what.low, std::memory_order_release);
  link(slot);
  next().forget(slot);
  put(head_of().clock, get(head_of().clock) + 1);
  return made;
}
PENSTOCK_INLINE void block_index::drop(std::uint32_t slot) const noexcept {
  if (look_at(slot).now() != phase::free) unlink(slot);
  set_state(slot, phase::free);
  put(use(slot), std::uint64_t{0});
}
PENSTOCK_INLINE bool block_index::held(std::uint32_t slot) const noexcept {
  return get(use(slot)) == used_now;
}
PENSTOCK_INLINE void block_index::settle(std::uint32_t slot) const noexcept {
  put(use(slot), get(head_of().clock));
}

PENSTOCK_INLINE block_index::layout::layout(const shape& what) noexcept
    : pieces(what.pieces()),
      chains(head_record::bytes),
      slots(chains + (std::bit_ceil(what.slots) * sizeof(std::uint32_t) + 63) / 64 * 64),
      uses(slots + what.slots * sizeof(slot_record)),
      sums(uses + what.slots * sizeof(std::uint64_t)),
      next(sums + what.slots * pieces * sizeof(std::uint64_t)),
      // Whole pages, since that is what they take of a disk.
      end((next + next_uses::bytes(what.slots) + head_record::bytes - 1) / head_record::bytes *
          head_record::bytes) {}
PENSTOCK_INLINE std::uint32_t& block_index::chain(const key& what) const noexcept {
  return at<std::uint32_t>(layout_.chains, what.low & (std::bit_ceil(shape_.slots) - 1));
}
PENSTOCK_INLINE key block_index::key_of(slot_record& one) noexcept {
  // Not before the state that says that they change.
  return {get(one.high, std::memory_order_acquire), get(one.low, std::memory_order_acquire)};
}
PENSTOCK_INLINE void block_index::link(std::uint32_t slot) const noexcept {
  slot_record& one = record(slot);
  std::uint32_t& first = chain(key_of(one));
  put(one.next, get(first));
  put(first, slot + 1);
}

PENSTOCK_INLINE void block_index::unlink(std::uint32_t slot) const noexcept {
  slot_record& one = record(slot);
  std::uint32_t* word = &chain(key_of(one));
  for (std::uint64_t steps = 0; steps <= shape_.slots; ++steps) {
    const std::uint32_t next = get(*word);
    if (next == 0 || next > shape_.slots) return;
    if (next == slot + 1) {
      put(*word, get(one.next));
      return;
    }
    word = &record(next - 1).next;
  }
}
PENSTOCK_INLINE place block_index::set_state(std::uint32_t slot, phase next) const noexcept {
  std::uint32_t& word = record(slot).state;
  const std::uint32_t made = ((get(word) >> 2) + 1) << 2 | static_cast<std::uint32_t>(next);
  put(word, made, std::memory_order_seq_cst);
  return {slot, made};
}

PENSTOCK_INLINE void block_index::rebuild() const noexcept {
  for (std::uint64_t i = 0; i < std::bit_ceil(shape_.slots); ++i)
    put(at<std::uint32_t>(layout_.chains, i), 0u);
  for (std::uint32_t slot = 0; slot < shape_.slots; ++slot) {
    const phase now = look_at(slot).now();
    // Of two with one block, which a death can leave, one is enough.
    const bool used = now == phase::filling || now == phase::full;
    if (!used || find(key_of(record(slot)))) {
      set_state(slot, phase::free);
      put(use(slot), std::uint64_t{0});
      continue;
    }
    if (now == phase::filling) put(use(slot), used_now);
    link(slot);
  }
}

}  // namespace penstock::inline v0_1::detail::blocks
