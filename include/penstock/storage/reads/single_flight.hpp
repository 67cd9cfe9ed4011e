// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/storage/concepts.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace penstock::inline v0_1::detail {

/// Asks a store one question per object at a time: threads that want to know the same meanwhile wait for the
/// answer of the first.
///
/// Threads: any number may call.
class single_flight {
  struct question {
    object_id about;
    bool over = false;
    std::exception_ptr failed{};
  };

 public:
  /// Calls `f`, unless another thread does so for that object: then waits, and throws what it threw.
  template <class F>
  void ask(object_id about, F&& f) {
    std::unique_lock held(lock_);
    const std::uint64_t cancels = cancels_;
    while (const std::shared_ptr<question> asked = find(about)) {
      changed_.wait(held, [&] { return asked->over; });
      if (!asked->failed) return;
      // One that was cancelled before this thread came says nothing to it.
      if (cancels != cancels_ || !was_stopped(asked->failed)) std::rethrow_exception(asked->failed);
    }
    const auto mine = std::make_shared<question>(question{about});
    open_.push_back(mine);
    held.unlock();
    const std::exception_ptr failed = thrown_by(f);
    held.lock();
    std::erase(open_, mine);
    mine->over = true;
    mine->failed = failed;
    held.unlock();
    changed_.notify_all();
    if (failed) std::rethrow_exception(failed);
  }
  /// Notes that the questions asked until now are being cancelled, and ends their pauses.
  void cancel() noexcept {
    {
      const std::scoped_lock held(lock_);
      ++cancels_;
    }
    changed_.notify_all();
  }

  [[nodiscard]] std::uint64_t cancels() {
    const std::scoped_lock held(lock_);
    return cancels_;
  }
  /// For who asks: waits so long. Throws errc::stopped if it was cancelled since `cancels()` said that.
  void pause(std::chrono::nanoseconds time, std::uint64_t since) {
    std::unique_lock held(lock_);
    if (changed_.wait_for(held, time, [&] { return cancels_ != since; }))
      throw error(errc::stopped, "the read was cancelled");
  }

 private:
  [[nodiscard]] std::shared_ptr<question> find(object_id about) const {
    for (const auto& one : open_)
      if (one->about == about) return one;
    return nullptr;
  }
  [[nodiscard]] static bool was_stopped(const std::exception_ptr& failed) noexcept {
    try {
      std::rethrow_exception(failed);
    } catch (const error& e) {
      return e.code() == errc::stopped;
    } catch (...) {
      return false;
    }
  }

  std::mutex lock_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<question>> open_;
  std::uint64_t cancels_ = 0;
};

}  // namespace penstock::inline v0_1::detail
