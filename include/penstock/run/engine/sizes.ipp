// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/engine/sizes.hpp>

#include <penstock/core/bytes.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/run/engine/tuning/tuning.hpp>

#include <algorithm>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE std::size_t run_sizes::batches_per_block(std::uint64_t slots) const noexcept {
  if (!facts_.direct || !facts_.plain || facts_.maps_batches || facts_.copies || options_.depth) return 1;
  return static_cast<std::size_t>(
      std::clamp<std::uint64_t>(plain_slots() / std::max<std::uint64_t>(1, slots), 1, tuning::block_batches));
}

PENSTOCK_INLINE std::size_t run_sizes::depth(std::uint64_t slots) const noexcept {
  if (options_.depth) return std::max<std::size_t>(2, *options_.depth);
  const unsigned workers = options_.workers.value_or(1);
  // One is held while the next is filled; on a device one is computed on, the next copied, and one filled.
  if (workers == 0) return facts_.copies ? 3 : 2;
  const std::size_t few = std::max<std::size_t>(4, workers + tuning::beyond_workers);
  const std::uint64_t each = std::max(facts_.sample_bytes, facts_.slot_bytes);
  const bool small =
      facts_.sample_bytes != 0 && each <= tuning::crowded_block / std::max<std::uint64_t>(1, slots);
  if (!facts_.crowded || facts_.one_at_a_time || !small) return few;
  // in all about as much as stays in the caches
  const std::uint64_t fit = tuning::crowded_bytes / (each * std::max<std::uint64_t>(1, slots));
  return std::max(few, detail::to_size(std::min({fit, std::uint64_t{16} * workers, tuning::crowded_blocks})));
}

PENSTOCK_INLINE std::uint64_t run_sizes::grain(std::uint64_t slots) const noexcept {
  if (!facts_.direct) return slots;
  if (facts_.one_at_a_time) return 1;
  if (facts_.plain) return std::min(slots, plain_slots());
  // Without workers nobody else waits for a share, and looking ahead begins anew with each grain.
  const bool alone = options_.workers.value_or(1) == 0;
  return std::min(slots, slots_in(alone ? tuning::grain_alone : tuning::grain, tuning::grain_slots,
                                  tuning::unsized_slots));
}

PENSTOCK_INLINE std::uint64_t run_sizes::grains(std::uint64_t slots, std::uint64_t batch) const noexcept {
  const std::uint64_t each = grain(slots), usual = (slots + each - 1) / each;
  const unsigned workers = options_.workers.value_or(1);
  if (!facts_.direct || !facts_.takes_time || workers < 2) return usual;
  return std::max(usual, std::min<std::uint64_t>(batch, 2 * std::uint64_t{workers}));
}

PENSTOCK_INLINE std::uint64_t run_sizes::first_chunk() const noexcept {
  if (!facts_.takes_time) return chunk();
  return std::clamp<std::uint64_t>(facts_.batch_size / 16, std::min<std::uint64_t>(4, chunk()), chunk());
}

PENSTOCK_INLINE std::uint64_t run_sizes::chunk() const noexcept {
  if (facts_.plain) return std::min(plain_slots(), tuning::chunk_rows);
  if (facts_.batch_by_chunk) return std::min(facts_.batch_size, tuning::chunk_rows);
  return slots_in(tuning::chunk, tuning::grain_slots, tuning::chunk_slots);
}

PENSTOCK_INLINE std::uint64_t run_sizes::plain_slots() const noexcept {
  const bool alone = options_.workers.value_or(1) == 0;
  const std::uint64_t bytes = alone            ? tuning::plain_grain_alone
                              : facts_.crowded ? tuning::plain_grain_crowded
                                               : tuning::plain_grain;
  return std::max<std::uint64_t>(1, bytes / std::max<std::uint64_t>(1, facts_.slot_bytes));
}

PENSTOCK_INLINE std::uint64_t run_sizes::slots_in(std::uint64_t bytes, std::uint64_t maximum,
                                                  std::uint64_t unknown) const noexcept {
  const std::uint64_t each = std::max(facts_.sample_bytes, facts_.slot_bytes);
  if (facts_.sample_bytes == 0) maximum = unknown;  // making a slot may take far more than the slot itself
  return each == 0 ? unknown : std::clamp<std::uint64_t>(bytes / each, 1, maximum);
}

}  // namespace penstock::inline v0_1
