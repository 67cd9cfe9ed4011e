// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/engine/tuning/slow_samples.hpp>

#include <algorithm>
#include <bit>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE slow_samples::slow_samples(std::uint64_t samples)
    : lines_(std::bit_ceil(std::clamp<std::uint64_t>(samples / 8, 64, most)) / in_line),
      words_(detail::to_size(lines_ * in_line)) {}

PENSTOCK_INLINE void slow_samples::note(std::uint64_t sample, std::uint64_t ns) noexcept {
  const std::uint64_t time = std::min(ns >> shift, times), made = time == 0 ? 0 : sample << 24 | time;
  std::atomic<std::uint64_t>* const line = line_of(sample);
  std::atomic<std::uint64_t>* shortest = line;
  for (std::size_t i = 0; i < in_line; ++i) {
    const std::uint64_t word = line[i].load(std::memory_order_relaxed);
    if (is_of(word, sample)) return line[i].store(made, std::memory_order_relaxed);
    if ((word & times) < (shortest->load(std::memory_order_relaxed) & times)) shortest = line + i;
  }
  if (time <= (shortest->load(std::memory_order_relaxed) & times)) return;
  shortest->store(made, std::memory_order_relaxed);
  any_.store(true, std::memory_order_relaxed);
}

}  // namespace penstock::inline v0_1
