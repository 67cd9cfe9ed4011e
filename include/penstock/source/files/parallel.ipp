// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/files/parallel.hpp>

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {
namespace detail {

PENSTOCK_INLINE void shared_loop::help() noexcept {
  while (!stopped_.load(std::memory_order_relaxed)) {
    // Numbers are handed out in order: when one fails, all lower ones have been started and will finish.
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

PENSTOCK_INLINE void shared_loop::run(std::size_t threads) {
  if (threads == 0) threads = static_cast<std::size_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  threads = std::min(threads, count_);
  const auto help_it = [](void* loop) -> void* {
    static_cast<shared_loop*>(loop)->help();
    return nullptr;
  };
  std::vector<pthread_t> others;
  for (std::size_t i = 1; i < threads; ++i) {
    others.reserve(threads);
    pthread_t one{};
    // the threads that were created do the work
    if (::pthread_create(&one, nullptr, help_it, this) != 0) break;
    others.push_back(one);
  }
  help();
  for (const pthread_t other : others) ::pthread_join(other, nullptr);
  end();
}

}  // namespace detail
}  // namespace penstock::inline v0_1
