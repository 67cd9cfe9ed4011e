// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/resilience/latency_model.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/random.hpp>

#include <algorithm>
#include <functional>
#include <utility>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE latency_model::~latency_model() {
  cancel();
  if (!thread_.joinable()) return;
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
  }
  queue_changed_.notify_one();
  thread_.join();
}
PENSTOCK_INLINE std::uint64_t latency_model::size(object_id id) const {
  std::this_thread::sleep_for(options_.size_latency);
  return session_.size(id);
}
PENSTOCK_INLINE object_version latency_model::version(object_id id) const {
  std::this_thread::sleep_for(options_.size_latency);
  return session_.version(id);
}

PENSTOCK_INLINE void latency_model::read(object_id id, std::uint64_t offset, mutable_bytes into) {
  const read_request request{id, offset, into};
  fate drawn;
  const clock::time_point begun = clock::now();
  {
    std::unique_lock lock(mutex_);
    drawn = draw(request);
    clock::time_point due = reserve(request, drawn.stall, begun);
    std::uint64_t seen = cancels_;
    begin_one();
    while (clock::now() < due) {
      cancelled_.wait_until(lock, due);
      if (cancels_ == seen) continue;
      seen = cancels_;  // the reads before this one are gone
      due = std::min(due, reserve(request, drawn.stall, clock::now()));
    }
  }
  if (const std::exception_ptr failed = ended({request, {}}, drawn, begun)) std::rethrow_exception(failed);
}

PENSTOCK_INLINE void latency_model::read_many(std::span<const read_request> requests,
                                              read_listener listener) noexcept {
  std::size_t begun = 0;
  std::exception_ptr failed;
  try {
    const std::scoped_lock lock(mutex_);
    if (!thread_.joinable()) thread_ = std::thread([this]() noexcept { work(); });
    const clock::time_point now = clock::now();
    while (begun < requests.size()) {
      const fate drawn = draw(requests[begun]);
      queue_.push_back(
          {{requests[begun], listener}, drawn, now, reserve(requests[begun], drawn.stall, now), begun_++});
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

template <class Which>
void latency_model::stop_if(Which&& which) noexcept {
  for (pending& one : queue_) {
    if (!which(one)) continue;
    one.what.stopped = true;
    one.due = {};
  }
  std::make_heap(queue_.begin(), queue_.end(), later);
}
PENSTOCK_INLINE void latency_model::cancel() noexcept {
  {
    const std::scoped_lock lock(mutex_);
    stop_if([](const pending&) { return true; });
    places_.clear();
    link_free_ = {};
    ++cancels_;
  }
  queue_changed_.notify_one();
  cancelled_.notify_all();
}
PENSTOCK_INLINE void latency_model::abandon(std::uint64_t tag) noexcept {
  {
    const std::scoped_lock lock(mutex_);
    stop_if([tag](const pending& one) { return one.what.request.tag == tag; });
  }
  queue_changed_.notify_one();
}
PENSTOCK_INLINE session_report latency_model::report() const noexcept {
  return {.counters = {.requests = requests_.load(std::memory_order_relaxed),
                       .bytes = bytes_.load(std::memory_order_relaxed),
                       .slow_downs = slow_downs_.load(std::memory_order_relaxed)},
          .requests = recorded_.read(),
          .counted = true,
          .names = names_};
}

PENSTOCK_INLINE void latency_model::check(const simulated_storage_options& options) {
  constexpr std::chrono::microseconds none{0}, hour{3'600'000'000};
  const std::chrono::microseconds asked = options.asks_to_wait;
  for (const auto time : {options.latency, options.jitter, options.size_latency, options.stall, asked}) {
    if (time < none || time > hour)
      throw error(errc::argument,
                  {"a simulated storage takes from 0 us to an hour, not ", time.count(), " us"});
  }
  if (options.bytes_per_second != 0 && !(options.bytes_per_second >= 1 && options.bytes_per_second < 1e18))
    throw error(errc::argument, "a simulated storage gives from 1 to 1e18 bytes per second; 0 is no limit");
  if (!(options.failing >= 0 && options.failing <= 1))
    throw error(errc::argument, "the share of reads that fail in a simulated storage is from 0 to 1");
  for (const simulated_fault& fault : options.faults) {
    if (fault.begin >= fault.end)
      throw error(errc::argument, {"a simulated fault from ", fault.begin, " to ", fault.end, " is empty"});
  }
}

PENSTOCK_INLINE latency_model::clock::time_point latency_model::reserve(const read_request& request,
                                                                        clock::duration stall,
                                                                        clock::time_point begin) {
  clock::time_point due = begin;
  const bool bounded = options_.max_in_flight != 0;
  if (bounded && places_.size() >= options_.max_in_flight) {
    std::pop_heap(places_.begin(), places_.end(), std::greater<>());
    due = std::max(due, places_.back());
    places_.pop_back();
  }
  due += options_.latency + stall;
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

PENSTOCK_INLINE latency_model::fate latency_model::draw(const read_request& request) {
  fate drawn;
  drawn.refused = options_.slow_down_above != 0 &&
                  account_->in_flight.load(std::memory_order_relaxed) >= options_.slow_down_above;
  if (options_.failing == 0 && options_.stall_one_in == 0) return drawn;
  const std::uint32_t before = reads_of_[{request.object, request.offset}]++;
  drawn.fails = before < options_.failing_times &&
                rng(options_.seed, 1, request.offset, request.object).chance(options_.failing);
  if (options_.stall_one_in != 0 &&
      rng(options_.seed, 2 + std::uint64_t{before}, request.offset, request.object)
              .below(options_.stall_one_in) == 0)
    drawn.stall = options_.stall;
  return drawn;
}
PENSTOCK_INLINE void latency_model::begin_one() noexcept {
  const std::uint64_t now = account_->in_flight.fetch_add(1, std::memory_order_relaxed) + 1;
  std::uint64_t maximum = account_->peak_in_flight.load(std::memory_order_relaxed);
  while (now > maximum &&
         !account_->peak_in_flight.compare_exchange_weak(maximum, now, std::memory_order_relaxed)) {
  }
}

PENSTOCK_INLINE void latency_model::perform(const read_request& request, const fate& drawn) {
  account_->reads.fetch_add(1, std::memory_order_relaxed);
  requests_.fetch_add(1, std::memory_order_relaxed);
  if (drawn.refused) fail(request, simulated_failure::slow_down);
  check_faults(request);
  if (drawn.fails) fail(request, simulated_failure::broken);
  session_.read(request.object, request.offset, request.into);
  account_->bytes.fetch_add(request.into.size(), std::memory_order_relaxed);
  bytes_.fetch_add(request.into.size(), std::memory_order_relaxed);
}

PENSTOCK_INLINE void latency_model::check_faults(const read_request& request) {
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
    fail(request, fault.how);
  }
}

PENSTOCK_INLINE void latency_model::fail(const read_request& request, simulated_failure how) {
  const bool slow_down = how == simulated_failure::slow_down;
  error e(errc::io, slow_down                             ? "the store asks for fewer reads, as simulated"
                    : how == simulated_failure::timed_out ? "this read takes too long, as simulated"
                    : how == simulated_failure::missing   ? "there is no such object, as simulated"
                                                          : "this read fails, as simulated");
  e.in_file(request.object < names_.size() ? names_[request.object] : "").at_offset(request.offset);
  if (slow_down) {
    slow_downs_.fetch_add(1, std::memory_order_relaxed);
    throw std::move(e).asked_to_wait(static_cast<std::uint64_t>(options_.asks_to_wait.count()));
  }
  if (how == simulated_failure::timed_out) throw std::move(e).after_time_out();
  throw std::move(e).recurring(how == simulated_failure::missing);
}

PENSTOCK_INLINE std::exception_ptr latency_model::ended(const waiting_read& one, const fate& drawn,
                                                        clock::time_point begun) noexcept {
  std::exception_ptr failed =
      one.stopped ? read_cancelled(one.request, names_) : thrown_by([&] { perform(one.request, drawn); });
  if (!one.stopped)
    recorded_.ended(begun, clock::now(), failed ? &request_recorder::failed : &request_recorder::answered);
  account_->in_flight.fetch_sub(1, std::memory_order_relaxed);
  return failed;
}

PENSTOCK_INLINE void latency_model::work() noexcept {
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
      const fate drawn = queue_.back().drawn;
      const clock::time_point begun = queue_.back().begun;
      queue_.pop_back();
      lock.unlock();
      one.tell(ended(one, drawn, begun));
      lock.lock();
    }
  }
}

}  // namespace penstock::inline v0_1::detail
