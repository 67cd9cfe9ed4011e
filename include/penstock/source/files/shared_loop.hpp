// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <type_traits>
#include <utility>

namespace penstock::inline v0_1 {
namespace detail {

/// A loop whose rounds are taken by whatever threads have nothing else to do.
class shared_loop {
 public:
  /// Calls `work(i)` for each i below `count`; it must outlive the loop.
  template <class Work>
  shared_loop(std::size_t count, Work& work) noexcept
      : count_(count),
        work_([](void* what, std::size_t i) { (*static_cast<Work*>(what))(i); }),
        what_(&work) {}

  /// Takes rounds until none is left, or one has failed. Any number of threads.
  void help() noexcept;
  /// Rethrows the failure of the lowest round. Called when no thread helps any more.
  void end();

 private:
  std::size_t count_;
  void (*work_)(void* what, std::size_t i);
  void* what_;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;
  std::size_t lowest_ = 0;
  std::exception_ptr failure_;
};

inline void shared_loop::help() noexcept {
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

inline void shared_loop::end() {
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

}  // namespace detail
}  // namespace penstock::inline v0_1
