// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/cache/next_uses.hpp>

#include <algorithm>

namespace penstock::inline v0_1::detail::blocks {

PENSTOCK_INLINE bool next_uses::is_used(std::uint32_t row) const noexcept {
  return blocks::get(record(row).used, std::memory_order_acquire) != 0;
}
PENSTOCK_INLINE void next_uses::begin(std::uint32_t row) const noexcept {
  clear(row);
  stand_at(row, 0, 0);
  put(record(row).used, std::uint64_t{1}, std::memory_order_release);
}
PENSTOCK_INLINE void next_uses::end(std::uint32_t row) const noexcept {
  put(record(row).used, std::uint64_t{0}, std::memory_order_release);
}
PENSTOCK_INLINE void next_uses::stand_at(std::uint32_t row, std::uint64_t run_row,
                                         std::uint64_t ns_per_row) const noexcept {
  put(record(row).run_row, run_row);
  put(record(row).ns_per_row, ns_per_row);
}
PENSTOCK_INLINE next_use next_uses::get(std::uint32_t row, std::uint32_t slot) const noexcept {
  return next_use::of_word(blocks::get(word(row, slot)));
}
PENSTOCK_INLINE void next_uses::set(std::uint32_t row, std::uint32_t slot, next_use when) const noexcept {
  // In one order with the states of slots: see `block_index::stand_at`.
  put(word(row, slot), when.word(), std::memory_order_seq_cst);
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
  next_uses::row_record& one = all.record(row);
  rows_[count_++] = {get(one.run_row), get(one.ns_per_row), &all.word(row, 0), row};
}

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
PENSTOCK_INLINE std::uint64_t outlook::distance(std::uint32_t slot) const noexcept {
  std::uint64_t least = next_uses::farthest;
  for (std::uint32_t i = 0; i < count_ && least != 0; ++i)
    least = std::min(least, rows_[i].to(next_use::of_word(get(rows_[i].words[slot]))));
  return least;
}
PENSTOCK_INLINE std::uint64_t outlook::distance(std::uint32_t row, next_use when) const noexcept {
  for (std::uint32_t i = 0; i < count_; ++i)
    if (rows_[i].number == row) return rows_[i].to(when);
  return 0;
}
PENSTOCK_INLINE std::uint64_t outlook::row_seen::to(next_use when) const noexcept {
  if (when.is_never()) return next_uses::farthest;
  constexpr std::uint64_t max_rows_ahead = std::uint64_t{1} << 32, max_ns = std::uint64_t{1} << 31;
  return std::min(when.rows_from(run_row), max_rows_ahead) * std::min(ns_per_row, max_ns);
}

}  // namespace penstock::inline v0_1::detail::blocks
