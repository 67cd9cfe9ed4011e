// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/detail/shared_loop.hpp>

#include <utility>

namespace penstock::inline v0_1 {
namespace detail {

PENSTOCK_INLINE void shared_loop::help() noexcept {
  while (!stopped_.load(std::memory_order_relaxed)) {
    const std::size_t i = next_.fetch_add(1, std::memory_order_relaxed);
    if (i >= count_) return;
    // Told outside of the handler, so that the thread that ends last does not free what another one throws.
    std::exception_ptr thrown;
    try {
      work_(what_, i);
    } catch (...) {
      thrown = std::current_exception();
    }
    if (!thrown) continue;
    stopped_.store(true, std::memory_order_relaxed);
    const std::scoped_lock lock(mutex_);
    if (!failure_ || i < lowest_) {
      std::swap(failure_, thrown);
      lowest_ = i;
    }
  }
}

PENSTOCK_INLINE void shared_loop::end() {
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

}  // namespace detail
}  // namespace penstock::inline v0_1
