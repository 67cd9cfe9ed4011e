// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/detail/delay_line.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/random.hpp>

#include <algorithm>
#include <exception>
#include <functional>
#include <utility>

namespace penstock::inline v0_1 {
namespace detail {

PENSTOCK_INLINE delay_account::delay_account(std::span<const simulated_fault> faults)
    : faults_left(faults.size()) {
  for (std::size_t i = 0; i < faults.size(); ++i) faults_left[i].store(faults[i].times);
}

PENSTOCK_INLINE delay_line::delay_line(session_view session, std::span<const std::string> names,
                                       const simulated_storage_options& options,
                                       shared<delay_account> account)
    : session_(session), names_(names), options_(options), account_(std::move(account)) {}
PENSTOCK_INLINE delay_line::~delay_line() {
  cancel();
  if (!thread_.joinable()) return;
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
  }
  queue_changed_.notify_one();
  thread_.join();
}

PENSTOCK_INLINE void delay_line::check(const simulated_storage_options& options) {
  constexpr std::chrono::microseconds none{0}, hour{3'600'000'000};
  for (const auto time : {options.latency, options.jitter, options.size_latency}) {
    if (time < none || time > hour)
      throw error(errc::argument,
                  {"a simulated storage takes from 0 us to an hour, not ", time.count(), " us"});
  }
  if (options.bytes_per_second != 0 && !(options.bytes_per_second >= 1 && options.bytes_per_second < 1e18))
    throw error(errc::argument, "a simulated storage gives from 1 to 1e18 bytes per second; 0 is no limit");
  for (const simulated_fault& fault : options.faults) {
    if (fault.begin >= fault.end)
      throw error(errc::argument, {"a simulated fault from ", fault.begin, " to ", fault.end, " is empty"});
  }
}

PENSTOCK_INLINE std::uint64_t delay_line::size(object_id id) const {
  std::this_thread::sleep_for(options_.size_latency);
  return session_.size(id);
}
PENSTOCK_INLINE object_signature delay_line::signature(object_id id) const {
  std::this_thread::sleep_for(options_.size_latency);
  return session_.signature(id);
}

PENSTOCK_INLINE delay_line::clock::time_point delay_line::reserve(const read_request& request,
                                                                  clock::time_point begin) {
  clock::time_point due = begin;
  const bool bounded = options_.at_once != 0;
  if (bounded && places_.size() >= options_.at_once) {
    std::pop_heap(places_.begin(), places_.end(), std::greater<>());
    due = std::max(due, places_.back());
    places_.pop_back();
  }
  due += options_.latency;
  if (options_.jitter.count() > 0) {
    const std::uint64_t draw = mix64(mix64(options_.seed ^ mix64(request.object)) ^ request.offset);
    due += std::chrono::microseconds(draw % (static_cast<std::uint64_t>(options_.jitter.count()) + 1));
  }
  if (options_.bytes_per_second > 0) {
    const double seconds = static_cast<double>(request.into.size()) / options_.bytes_per_second;
    due = std::max(due, link_free_) + std::chrono::duration_cast<clock::duration>(
                                          std::chrono::duration<double>(std::min(seconds, 3600.0)));
    link_free_ = due;
  }
  if (bounded) {
    places_.push_back(due);
    std::push_heap(places_.begin(), places_.end(), std::greater<>());
  }
  return due;
}

PENSTOCK_INLINE void delay_line::begin_one() noexcept {
  const std::uint64_t now = account_->in_flight.fetch_add(1, std::memory_order_relaxed) + 1;
  std::uint64_t most = account_->most_in_flight.load(std::memory_order_relaxed);
  while (now > most &&
         !account_->most_in_flight.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
  }
}

PENSTOCK_INLINE void delay_line::read(object_id id, std::uint64_t offset, mutable_bytes into) {
  const read_request request{id, offset, into};
  {
    std::unique_lock lock(mutex_);
    clock::time_point due = reserve(request, clock::now());
    std::uint64_t seen = cancels_;
    begin_one();
    while (clock::now() < due) {
      cancelled_.wait_until(lock, due);
      if (cancels_ == seen) continue;
      seen = cancels_;  // the reads before this one are gone
      due = std::min(due, reserve(request, clock::now()));
    }
  }
  try {
    perform(request);
  } catch (...) {
    account_->in_flight.fetch_sub(1, std::memory_order_relaxed);
    throw;
  }
  account_->in_flight.fetch_sub(1, std::memory_order_relaxed);
}

PENSTOCK_INLINE void delay_line::read_many(std::span<const read_request> requests,
                                           read_listener listener) noexcept {
  std::size_t begun = 0;
  std::exception_ptr failed;
  try {
    const std::scoped_lock lock(mutex_);
    if (!thread_.joinable()) thread_ = std::thread([this]() noexcept { work(); });
    const clock::time_point now = clock::now();
    while (begun < requests.size()) {
      queue_.push_back({{requests[begun], listener}, reserve(requests[begun], now), begun_++});
      std::push_heap(queue_.begin(), queue_.end(), later);
      begin_one();
      ++begun;
    }
  } catch (...) {
    failed = std::current_exception();
  }
  queue_changed_.notify_one();
  for (const read_request& request : requests.subspan(begun))
    listener.done(listener.self, request.tag, failed);
}

PENSTOCK_INLINE void delay_line::cancel() noexcept {
  {
    const std::scoped_lock lock(mutex_);
    for (pending& one : queue_) {
      one.what.stopped = true;
      one.due = {};
    }
    std::make_heap(queue_.begin(), queue_.end(), later);
    places_.clear();
    link_free_ = {};
    ++cancels_;
  }
  queue_changed_.notify_one();
  cancelled_.notify_all();
}

PENSTOCK_INLINE void delay_line::check_faults(const read_request& request) const {
  for (std::size_t i = 0; i < options_.faults.size(); ++i) {
    const simulated_fault& fault = options_.faults[i];
    const bool before = fault.begin > request.offset && fault.begin - request.offset >= request.into.size();
    if (fault.object != request.object || before || request.offset >= fault.end) continue;
    if (fault.times != ~0u) {
      std::atomic<std::uint32_t>& left = account_->faults_left[i];
      std::uint32_t seen = left.load(std::memory_order_relaxed);
      while (seen > 0 && !left.compare_exchange_weak(seen, seen - 1, std::memory_order_relaxed)) {
      }
      if (seen == 0) continue;
    }
    throw error(errc::io, "this read fails, as simulated")
        .in_file(request.object < names_.size() ? names_[request.object] : "")
        .at_offset(request.offset);
  }
}

PENSTOCK_INLINE void delay_line::perform(const read_request& request) {
  account_->reads.fetch_add(1, std::memory_order_relaxed);
  check_faults(request);
  session_.read(request.object, request.offset, request.into);
  account_->bytes.fetch_add(request.into.size(), std::memory_order_relaxed);
}

PENSTOCK_INLINE void delay_line::finish(const waiting_read& one) noexcept {
  std::exception_ptr failed;
  if (one.stopped) {
    failed = read_cancelled(one.request, names_);
  } else {
    try {
      perform(one.request);
    } catch (...) {
      failed = std::current_exception();
    }
  }
  account_->in_flight.fetch_sub(1, std::memory_order_relaxed);
  one.tell(std::move(failed));
}

PENSTOCK_INLINE void delay_line::work() noexcept {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (queue_.empty()) {
      if (ends_) return;
      queue_changed_.wait(lock);
    } else if (const clock::time_point due = queue_.front().due; due > clock::now()) {
      queue_changed_.wait_until(lock, due);  // a copy: the queue may change meanwhile
    } else {
      std::pop_heap(queue_.begin(), queue_.end(), later);
      const waiting_read one = queue_.back().what;
      queue_.pop_back();
      lock.unlock();
      finish(one);
      lock.lock();
    }
  }
}

}  // namespace detail
}  // namespace penstock::inline v0_1
