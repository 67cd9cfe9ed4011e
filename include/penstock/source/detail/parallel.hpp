// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace penstock::inline v0_1 {
namespace detail::tar {

/// Calls `work(i)` for each i below `count`, in up to `threads` threads (0: as many as the machine has). Of
/// several exceptions the one with the lowest i is thrown; after one, no new i is begun.
template <class Work>
void for_each_in_parallel(std::size_t count, std::size_t threads, Work&& work) {
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  std::size_t lowest = count;
  std::exception_ptr first;
  const auto run = [&] {
    while (!failed.load(std::memory_order_relaxed)) {
      // Numbers go out in order: when one fails, all lower ones were begun and will be finished.
      const std::size_t i = next.fetch_add(1, std::memory_order_relaxed);
      if (i >= count) return;
      try {
        work(i);
      } catch (...) {
        const std::scoped_lock lock(mutex);
        if (i < lowest) {
          lowest = i;
          first = std::current_exception();
        }
        failed.store(true, std::memory_order_relaxed);
      }
    }
  };
  if (threads == 0) threads = std::max<std::size_t>(1, std::thread::hardware_concurrency());
  threads = std::min(threads, count);
  std::vector<std::thread> others;
  try {
    for (std::size_t i = 1; i < threads; ++i) others.emplace_back(run);
  } catch (...) {  // no more threads to be had: those there are do the work
  }
  run();
  for (std::thread& other : others) other.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace detail::tar
}  // namespace penstock::inline v0_1
