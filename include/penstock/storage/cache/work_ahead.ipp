// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/cache/work_ahead.hpp>

namespace penstock::inline v0_1 {
namespace detail {

PENSTOCK_INLINE work_ahead::~work_ahead() {
  stop();
  for (std::thread& one : threads_) one.join();
}

PENSTOCK_INLINE void work_ahead::start(std::size_t threads, task what, void* self) noexcept {
  const std::scoped_lock lock(mutex_);
  if (started_ || ends_) return;
  started_ = true;
  what_ = what;
  self_ = self;
  try {
    while (threads_.size() < threads) threads_.emplace_back([this]() noexcept { work(); });
  } catch (...) {  // those that run do the work
  }
}
PENSTOCK_INLINE void work_ahead::wake() noexcept {
  {
    const std::scoped_lock lock(mutex_);
    ++wakes_;
  }
  changed_.notify_one();
}
PENSTOCK_INLINE void work_ahead::stop() noexcept {
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
}

PENSTOCK_INLINE void work_ahead::work() noexcept {
  std::unique_lock lock(mutex_);
  while (!ends_) {
    const std::uint64_t seen = wakes_;
    lock.unlock();
    const bool more = what_(self_);
    lock.lock();
    if (!more) changed_.wait(lock, [&] { return ends_ || wakes_ != seen; });
  }
}

}  // namespace detail
}  // namespace penstock::inline v0_1
