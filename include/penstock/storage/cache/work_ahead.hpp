// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace penstock::inline v0_1::detail {

/// Threads that do what there is to do ahead of time, each one thing at a time, and then wait to be woken.
/// After a failure they rest for a second; who needs what failed gets the error.
class work_ahead {
 public:
  /// Returns whether there may be more to do.
  using task = bool (*)(void* self);

  ~work_ahead() { join(); }

  /// Starts so many threads, or as many as the system allows, if none were started before; wakes one of them.
  void start(std::size_t threads, task what, void* self) noexcept {
    const std::scoped_lock lock(mutex_);
    wake_locked();
    if (started_ || ends_) return;
    started_ = true;
    try {
      while (threads_.size() < threads) threads_.emplace_back([=, this]() noexcept { work(what, self); });
    } catch (...) {  // those that run do the work
    }
  }
  /// Wakes one of them; a task that finds something to do wakes the next one, which looks for more.
  void wake() noexcept {
    const std::scoped_lock lock(mutex_);
    wake_locked();
  }
  /// They end after what they do now; nothing is started any more.
  void stop() noexcept {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
    changed_.notify_all();
  }
  void join() noexcept {
    stop();
    for (std::thread& one : threads_) one.join();
    threads_.clear();
  }

 private:
  void wake_locked() noexcept {
    ++wakes_;
    changed_.notify_one();
  }
  void work(task what, void* self) noexcept {
    std::unique_lock lock(mutex_);
    while (!ends_) {
      const std::uint64_t seen = wakes_;
      bool more = false;
      if (std::chrono::steady_clock::now() >= rests_until_) {
        lock.unlock();
        bool failed = false;
        try {
          more = what(self);
        } catch (...) {
          failed = true;
        }
        lock.lock();
        if (failed) rests_until_ = std::chrono::steady_clock::now() + std::chrono::seconds(1);
      }
      if (!more) changed_.wait(lock, [&] { return ends_ || wakes_ != seen; });
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t wakes_ = 0;
  std::chrono::steady_clock::time_point rests_until_{};
  bool started_ = false, ends_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace penstock::inline v0_1::detail
