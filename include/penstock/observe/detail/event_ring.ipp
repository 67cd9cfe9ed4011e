// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/observe/detail/event_ring.hpp>

#include <penstock/core/to_size.hpp>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE event_ring::event_ring(std::size_t capacity)
    : capacity_(capacity == 0 ? 1 : capacity), slots_(std::make_unique<slot[]>(capacity_)) {}

PENSTOCK_INLINE void event_ring::add(const run_event& e) noexcept {
  const std::uint64_t number = begun_.load(std::memory_order_relaxed);
  begun_.store(number + 1, std::memory_order_relaxed);
  slot& into = slots_[detail::to_size(number % capacity_)];
  const words all = {e.begin_ns, e.end_ns, (std::uint64_t{e.stage} << 8) | static_cast<std::uint64_t>(e.what),
                     e.block,    e.batch,  e.epoch,
                     e.first,    e.last,   e.samples};
  for (std::size_t i = 0; i < all.size(); ++i) into[i].store(all[i], std::memory_order_release);
  done_.store(number + 1, std::memory_order_release);
}

PENSTOCK_INLINE std::uint64_t event_ring::copy(std::vector<run_event>& all) const {
  const std::uint64_t done = done_.load(std::memory_order_acquire);
  const std::uint64_t first = done > capacity_ ? done - capacity_ : 0;
  std::uint64_t dropped = first;
  for (std::uint64_t number = first; number < done; ++number) {
    const slot& at = slots_[detail::to_size(number % capacity_)];
    words w{};
    for (std::size_t i = 0; i < w.size(); ++i) w[i] = at[i].load(std::memory_order_acquire);
    if (begun_.load(std::memory_order_acquire) > number + capacity_) {
      dropped = number + 1;
      continue;
    }
    all.push_back({w[0], w[1], static_cast<activity>(w[2] & 0xff), static_cast<std::uint32_t>(w[2] >> 8),
                   w[3], w[4], w[5], w[6], w[7], w[8]});
  }
  return dropped;
}

}  // namespace penstock::inline v0_1::detail
