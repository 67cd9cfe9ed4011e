// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <type_traits>
#include <vector>

namespace penstock::inline v0_1 {
namespace detail::tar {

/// One loop whose rounds are done by several threads.
class parallel_loop {
 public:
  using work_type = void (*)(void* what, std::size_t i);

  parallel_loop(std::size_t count, work_type work, void* what)
      : count_(count), work_(work), what_(what), lowest_(count) {}

  void run(std::size_t threads) {
    if (threads == 0) threads = static_cast<std::size_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
    threads = std::min(threads, count_);
    std::vector<pthread_t> others;
    for (std::size_t i = 1; i < threads; ++i) {
      others.reserve(threads);
      pthread_t one{};
      if (::pthread_create(&one, nullptr, take_rounds, this) != 0) break;  // those there are do the work
      others.push_back(one);
    }
    take_rounds(this);
    for (const pthread_t other : others) ::pthread_join(other, nullptr);
    if (first_) std::rethrow_exception(first_);
  }

 private:
  static void* take_rounds(void* given) noexcept {
    auto& loop = *static_cast<parallel_loop*>(given);
    while (!loop.failed_.load(std::memory_order_relaxed)) {
      // Numbers go out in order: when one fails, all lower ones were begun and will be finished.
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

  std::size_t count_;
  work_type work_;
  void* what_;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::size_t lowest_;
  std::exception_ptr first_;
};

/// Calls `work(i)` for each i below `count`, in up to `threads` threads (0: as many as the machine has). Of
/// several exceptions the one with the lowest i is thrown; after one, no new i is begun.
template <class Work>
void for_each_in_parallel(std::size_t count, std::size_t threads, Work&& work) {
  using work_type = std::remove_reference_t<Work>;
  parallel_loop(
      count, [](void* what, std::size_t i) { (*static_cast<work_type*>(what))(i); },
      const_cast<std::remove_const_t<work_type>*>(&work))
      .run(threads);
}

}  // namespace detail::tar
}  // namespace penstock::inline v0_1
