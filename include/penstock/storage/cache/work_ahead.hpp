// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace penstock::inline v0_1 {
namespace detail {

/// Threads that do what there is to do ahead of time, each one thing at a time, and then wait to be woken.
class work_ahead {
 public:
  /// Returns whether there may be more to do.
  using task = bool (*)(void* self) noexcept;

  work_ahead() = default;
  work_ahead(const work_ahead&) = delete;
  work_ahead& operator=(const work_ahead&) = delete;
  ~work_ahead();

  /// Starts so many threads, or as many as the system allows; does nothing if they were started before.
  void start(std::size_t threads, task what, void* self) noexcept;
  /// Wakes one of them; a task that finds something to do wakes the next one, which looks for more.
  void wake() noexcept;
  /// They end after what they do now; nothing is started any more.
  void stop() noexcept;

 private:
  void work() noexcept;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t wakes_ = 0;
  bool started_ = false, ends_ = false;
  task what_ = nullptr;
  void* self_ = nullptr;
  std::vector<std::thread> threads_;
};

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/cache/work_ahead.ipp>
#endif
