// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/resilience/retry_policy.hpp>

#include <penstock/core/fingerprint.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/random.hpp>

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE read_failure read_failure::of(const error& failed) noexcept {
  return {!failed.recurs(), failed.timed_out(), failed.unreachable(), failed.retry_after_ms(),
          failed.code() == errc::stopped};
}

PENSTOCK_INLINE read_failure read_failure::of(const std::exception_ptr& failed) noexcept {
  try {
    std::rethrow_exception(failed);
  } catch (const error& e) {
    return of(e);
  } catch (...) {
    return {};
  }
}
PENSTOCK_INLINE std::chrono::milliseconds read_failure::asked(
    std::chrono::milliseconds longest) const noexcept {
  return std::min(longest, std::chrono::milliseconds(static_cast<std::int64_t>(
                               std::min<std::uint64_t>(asked_ms.value_or(0), 1'000'000'000))));
}

PENSTOCK_INLINE std::uint64_t arbitrary_seed() noexcept {
  static std::atomic<std::uint64_t> calls{0};
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  const auto place = reinterpret_cast<std::uintptr_t>(&calls);  // differs where programs are placed at random
  return fingerprint()
      .add(static_cast<std::uint64_t>(now))
      .add(static_cast<std::uint64_t>(::getpid()))
      .add(static_cast<std::uint64_t>(place))
      .add(calls.fetch_add(1, std::memory_order_relaxed))
      .value();
}

PENSTOCK_INLINE std::chrono::nanoseconds retry_wait(const retry_policy& policy, const read_request& what,
                                                    std::uint32_t attempt) noexcept {
  double maximum = std::chrono::duration<double>(policy.initial_backoff).count();
  const double ceiling = std::chrono::duration<double>(policy.max_backoff).count();
  for (std::uint32_t i = 1; i < attempt && maximum < ceiling; ++i) maximum *= 2;
  rng draw(policy.seed.value_or(0), attempt, what.offset, what.object);
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(std::min(maximum, ceiling) * draw.uniform()));
}
PENSTOCK_INLINE void retry_decision::explain(error& failed, std::uint32_t attempts) const {
  if (attempts == 1 && !spent && !late) return;
  failed.say_more(
      text({"after ", attempts, attempts == 1 ? " attempt" : " attempts",
            spent  ? "; so many reads failed that the budget for retries is spent"
            : late ? "; another one would begin after retrying_options::max_time or max_unreachable_time"
                   : ""}));
}
PENSTOCK_INLINE retrier::retrier(const retry_policy& policy) noexcept
    : policy_(policy),
      max_tokens_(static_cast<std::int64_t>(std::min<std::uint64_t>(policy.budget, 1'000'000'000))),
      tokens_(max_tokens_) {
  if (!policy_.seed) policy_.seed = arbitrary_seed();
}

PENSTOCK_INLINE retry_decision retrier::after(const read_request& what, std::uint32_t attempt,
                                              const read_failure& why, clock::time_point first_failed,
                                              bool costs) noexcept {
  retry_decision made;
  if (!why.may_pass || policy_.attempts <= 1) return made;
  made.due = clock::now() + retry_wait(policy_, what, attempt) + why.asked(policy_.max_retry_after);
  made.late = made.due - first_failed >
              (why.unreachable ? std::min(policy_.max_time, policy_.max_unreachable_time) : policy_.max_time);
  if (attempt >= policy_.attempts || made.late) return made;
  made.spent = costs && !take(why.timed_out ? for_time_out : why.asked_ms ? if_asked : for_retry);
  made.again = !made.spent;
  return made;
}
PENSTOCK_INLINE void retrier::succeeded(std::uint32_t attempt) noexcept {
  if (policy_.attempts > 1) give(attempt > 1 ? for_retry : 1);
}
PENSTOCK_INLINE void retrier::pause(std::chrono::nanoseconds time) const {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::unique_lock lock(mutex);
  changed.wait_for(lock, policy_.stop, time, [] { return false; });
  if (policy_.stop.stop_requested()) throw error(errc::stopped, "a wait was ended by the stop token");
}
PENSTOCK_INLINE bool retrier::take(std::int64_t cost) noexcept {
  if (max_tokens_ == 0) return true;
  std::int64_t left = tokens_.load(std::memory_order_relaxed);
  while (left >= cost)
    if (tokens_.compare_exchange_weak(left, left - cost, std::memory_order_relaxed)) return true;
  return false;
}
PENSTOCK_INLINE void retrier::give(std::int64_t some) noexcept {
  std::int64_t left = tokens_.load(std::memory_order_relaxed);
  while (left < max_tokens_ && !tokens_.compare_exchange_weak(left, std::min(max_tokens_, left + some),
                                                              std::memory_order_relaxed)) {
  }
}

}  // namespace penstock::inline v0_1::detail
