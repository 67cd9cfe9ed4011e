// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/cache/next_uses.hpp>

#include <algorithm>
#include <atomic>

namespace penstock::inline v0_1 {
namespace detail::blocks {

PENSTOCK_INLINE next_uses::row_record& next_uses::record(std::uint32_t row) const noexcept {
  return reinterpret_cast<row_record*>(memory_)[row];
}
PENSTOCK_INLINE std::uint64_t& next_uses::word(std::uint32_t row, std::uint32_t slot) const noexcept {
  return reinterpret_cast<std::uint64_t*>(memory_ + maximum * sizeof(row_record))[row * slots_ + slot];
}

PENSTOCK_INLINE bool next_uses::is_used(std::uint32_t row) const noexcept {
  return std::atomic_ref(record(row).used).load(std::memory_order_acquire) != 0;
}
PENSTOCK_INLINE void next_uses::begin(std::uint32_t row) const noexcept {
  clear(row);
  stand_at(row, 0, 0);
  std::atomic_ref(record(row).used).store(1, std::memory_order_release);
}
PENSTOCK_INLINE void next_uses::end(std::uint32_t row) const noexcept {
  std::atomic_ref(record(row).used).store(0, std::memory_order_release);
}

PENSTOCK_INLINE void next_uses::stand_at(std::uint32_t row, std::uint64_t run_row,
                                         std::uint64_t ns_per_row) const noexcept {
  std::atomic_ref(record(row).run_row).store(run_row, std::memory_order_relaxed);
  std::atomic_ref(record(row).ns_per_row).store(ns_per_row, std::memory_order_relaxed);
}
PENSTOCK_INLINE next_use next_uses::get(std::uint32_t row, std::uint32_t slot) const noexcept {
  return next_use::of_word(std::atomic_ref(word(row, slot)).load(std::memory_order_relaxed));
}
PENSTOCK_INLINE void next_uses::set(std::uint32_t row, std::uint32_t slot, next_use when) const noexcept {
  // In one order with the states of slots: see `block_index::stand_at`.
  std::atomic_ref(word(row, slot)).store(when.word(), std::memory_order_seq_cst);
}
PENSTOCK_INLINE void next_uses::clear(std::uint32_t row) const noexcept {
  for (std::uint32_t slot = 0; slot < slots_; ++slot) set(row, slot, {});
}
PENSTOCK_INLINE void next_uses::forget(std::uint32_t slot) const noexcept {
  for (std::uint32_t row = 0; row < maximum; ++row)
    if (is_used(row)) set(row, slot, {});
}

PENSTOCK_INLINE void outlook::add(const next_uses& all, std::uint32_t row) noexcept {
  if (count_ == rows_.size()) return;
  const next_uses::row_record& one = all.record(row);
  const auto read = [](const std::uint64_t& word) {
    return std::atomic_ref(const_cast<std::uint64_t&>(word)).load(std::memory_order_relaxed);
  };
  rows_[count_++] = {read(one.run_row), read(one.ns_per_row), &all.word(row, 0), row};
}

// The ranks of one job are as fast as each other, and their rows can be compared as they are: what the clock
// says of each would only add noise.
PENSTOCK_INLINE void outlook::settle() noexcept {
  constexpr std::uint64_t alike = 4;
  std::uint64_t least = ~std::uint64_t{0}, greatest = 0;
  for (std::uint32_t i = 0; i < count_; ++i) {
    least = std::min(least, rows_[i].ns_per_row);
    greatest = std::max(greatest, rows_[i].ns_per_row);
  }
  const bool as_they_are = count_ == 0 || least == 0 || greatest / alike <= least;
  for (std::uint32_t i = 0; as_they_are && i < count_; ++i) rows_[i].ns_per_row = 1;
}

PENSTOCK_INLINE std::uint64_t outlook::row_seen::to(next_use when) const noexcept {
  if (when.is_never()) return next_uses::farthest;
  constexpr std::uint64_t max_rows_ahead = std::uint64_t{1} << 32, max_ns = std::uint64_t{1} << 31;
  return std::min(when.rows_from(run_row), max_rows_ahead) * std::min(ns_per_row, max_ns);
}
PENSTOCK_INLINE std::uint64_t outlook::distance(std::uint32_t slot) const noexcept {
  std::uint64_t least = next_uses::farthest;
  for (std::uint32_t i = 0; i < count_ && least != 0; ++i) {
    std::uint64_t& word = const_cast<std::uint64_t&>(rows_[i].words[slot]);
    const auto when = next_use::of_word(std::atomic_ref(word).load(std::memory_order_relaxed));
    least = std::min(least, rows_[i].to(when));
  }
  return least;
}
PENSTOCK_INLINE std::uint64_t outlook::distance(std::uint32_t row, next_use when) const noexcept {
  for (std::uint32_t i = 0; i < count_; ++i)
    if (rows_[i].number == row) return rows_[i].to(when);
  return 0;
}

}  // namespace detail::blocks
}  // namespace penstock::inline v0_1
