// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/files/parallel.hpp>

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace penstock::inline v0_1 {
namespace detail {

PENSTOCK_INLINE void parallel_loop::run(std::size_t threads) {
  if (threads == 0) threads = static_cast<std::size_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  threads = std::min(threads, count_);
  std::vector<pthread_t> others;
  for (std::size_t i = 1; i < threads; ++i) {
    others.reserve(threads);
    pthread_t one{};
    // the threads that were created do the work
    if (::pthread_create(&one, nullptr, take_rounds, this) != 0) break;
    others.push_back(one);
  }
  take_rounds(this);
  for (const pthread_t other : others) ::pthread_join(other, nullptr);
  if (first_) std::rethrow_exception(first_);
}

PENSTOCK_INLINE void* parallel_loop::take_rounds(void* given) noexcept {
  auto& loop = *static_cast<parallel_loop*>(given);
  while (!loop.failed_.load(std::memory_order_relaxed)) {
    // Numbers are handed out in order: when one fails, all lower ones have been started and will
    // finish.
    const std::size_t i = loop.next_.fetch_add(1, std::memory_order_relaxed);
    if (i >= loop.count_) break;
    try {
      loop.work_(loop.what_, i);
    } catch (...) {
      const std::lock_guard lock(loop.mutex_);
      if (i < loop.lowest_) {
        loop.lowest_ = i;
        loop.first_ = std::current_exception();
      }
      loop.failed_.store(true, std::memory_order_relaxed);
    }
  }
  return nullptr;
}

}  // namespace detail
}  // namespace penstock::inline v0_1
