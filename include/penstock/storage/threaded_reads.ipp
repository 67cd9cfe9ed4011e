// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/threaded_reads.hpp>

#include <exception>
#include <utility>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE threaded_reads::~threaded_reads() {
  {
    const std::scoped_lock lock(mutex_);
    waiting_.stop();
    ends_ = true;
  }
  changed_.notify_all();
  for (std::thread& one : threads_) one.join();
}

PENSTOCK_INLINE void threaded_reads::read_many(std::span<const read_request> requests,
                                               read_listener listener) noexcept {
  const std::exception_ptr failed = detail::thrown_by([&] { begin(requests, listener); });
  changed_.notify_all();
  if (failed)
    for (const read_request& request : requests) listener.done(listener.self, request.tag, failed);
}

PENSTOCK_INLINE void threaded_reads::begin(std::span<const read_request> requests, read_listener listener) {
  const std::scoped_lock lock(mutex_);
  if (threads_.empty()) start_thread();
  waiting_.push(requests, listener);
  try {
    for (std::size_t idle = idle_; idle < waiting_.size() && threads_.size() < limit_; ++idle) start_thread();
  } catch (...) {  // the threads already running do the work
  }
}

PENSTOCK_INLINE void threaded_reads::start_thread() {
  threads_.emplace_back([this]() noexcept { work(); });
}

PENSTOCK_INLINE void threaded_reads::cancel() noexcept {
  const std::scoped_lock lock(mutex_);
  waiting_.stop();
}

PENSTOCK_INLINE void threaded_reads::finish(const detail::waiting_read& one) const noexcept {
  if (one.stopped) return one.tell(detail::read_cancelled(one.request, names_));
  one.tell(
      detail::thrown_by([&] { session_.read(one.request.object, one.request.offset, one.request.into); }));
}

PENSTOCK_INLINE void threaded_reads::work() noexcept {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (!waiting_.empty()) {
      const detail::waiting_read one = waiting_.pop();
      lock.unlock();
      finish(one);
      lock.lock();
    } else if (ends_) {
      return;
    } else {
      ++idle_;
      changed_.wait(lock);
      --idle_;
    }
  }
}

}  // namespace penstock::inline v0_1
