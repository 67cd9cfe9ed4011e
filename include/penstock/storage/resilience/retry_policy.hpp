// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/error.hpp>
#include <penstock/storage/concepts.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <stop_token>

namespace penstock::inline v0_1::detail {

/// What an exception says about trying again.
struct read_failure {
  bool may_pass = false, timed_out = false, unreachable = false;
  std::optional<std::uint64_t> asked_ms{};  // set if the store asked for fewer reads
  bool stopped = false;                     // by a caller, and not by the store

  [[nodiscard]] static read_failure of(const error& failed) noexcept;
  [[nodiscard]] static read_failure of(const std::exception_ptr& failed) noexcept;
  /// How long the store asked to wait, at most `longest`.
  [[nodiscard]] std::chrono::milliseconds asked(std::chrono::milliseconds longest) const noexcept;
};

/// When a second read is started.
struct hedge_rules {
  double max_extra_requests = 0.05;  // second reads per read, at most
  std::size_t observations = 32;
  std::chrono::microseconds min_delay{0};
  std::uint64_t bytes = 64_MiB;  // of buffers, at most
};

/// What is done about requests that fail or are late. One that says nothing does nothing.
struct retry_policy {
  using milliseconds = std::chrono::milliseconds;

  std::uint32_t attempts = 1;  // of each request, including the first
  milliseconds initial_backoff{0}, max_backoff{0}, max_retry_after{0};
  milliseconds max_time{86'400'000}, max_unreachable_time{86'400'000};  // from first failure to last attempt
  std::uint64_t budget = 0;             // tokens for attempts after the first; 0: no limit
  std::optional<std::uint64_t> seed{};  // draws the waits; none: each session has its own
  std::size_t max_in_flight = 0;        // reads in flight, at most; 0: no limit
  milliseconds max_pause{0};            // of all reads, when the store asked for it
  std::optional<hedge_rules> hedges{};  // none: no second reads
  std::stop_token stop{};               // ends all waits
};

/// Differs from call to call, and from process to process.
[[nodiscard]] std::uint64_t arbitrary_seed() noexcept;

/// The wait after a failed attempt: exponential back-off with full jitter, drawn from seed, object, offset
/// and attempt.
[[nodiscard]] std::chrono::nanoseconds retry_wait(const retry_policy& policy, const read_request& what,
                                                  std::uint32_t attempt) noexcept;

/// Whether and when a request is sent again.
struct retry_decision {
  bool again = false, spent = false, late = false;  // spent: the budget was
  std::chrono::steady_clock::time_point due{};

  /// Adds to the last failure how many attempts there were, and why there are no more.
  void explain(error& failed, std::uint32_t attempts) const;
};

/// Decides which of the requests to one store are sent again, and when. Attempts cost tokens of a budget, and
/// successful reads give them back, so that a store that is down is not asked more often than one that is
/// well. Source: AWS SDKs, retry mode "standard".
/// Threads: any number; `insist` is for one at a time.
class retrier {
  using clock = std::chrono::steady_clock;

 public:
  explicit retrier(const retry_policy& policy) noexcept;

  [[nodiscard]] const retry_policy& policy() const noexcept { return policy_; }
  /// Of a request whose first attempt failed at `first_failed`, and now that of number `attempt`. `costs`:
  /// another one needs tokens of the budget.
  [[nodiscard]] retry_decision after(const read_request& what, std::uint32_t attempt, const read_failure& why,
                                     clock::time_point first_failed, bool costs = true) noexcept;
  void succeeded(std::uint32_t attempt) noexcept;

  /// Calls `ask` until it succeeds, and returns its answer; `wait(time)` is called before further attempts.
  template <class Ask, class Wait>
  auto insist(Ask&& ask, Wait&& wait) {
    clock::time_point first_failed{};
    for (std::uint32_t attempt = 1;; ++attempt) {
      retry_decision next;
      try {
        auto answer = ask();
        succeeded(attempt);
        ++answers_;
        return answer;
      } catch (error& e) {
        if (attempt == 1) first_failed = clock::now();
        next = after({0, answers_, {}}, attempt, read_failure::of(e), first_failed);
        if (!next.again) {
          next.explain(e, attempt);
          throw;
        }
      }
      wait(next.due - clock::now());
    }
  }
  template <class Ask>
  auto insist(Ask&& ask) {
    return insist(ask, [this](std::chrono::nanoseconds time) { pause(time); });
  }
  /// Waits so long. Throws errc::stopped as soon as the policy's token asks for it.
  void pause(std::chrono::nanoseconds time) const;

 private:
  static constexpr std::int64_t for_retry = 5, for_time_out = 10, if_asked = 1;

  [[nodiscard]] bool take(std::int64_t cost) noexcept;
  /// Costs one load while the budget is full.
  void give(std::int64_t some) noexcept;

  retry_policy policy_;
  std::int64_t max_tokens_;  // 0: no limit
  std::atomic<std::int64_t> tokens_;
  std::uint64_t answers_ = 0;
};

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/resilience/retry_policy.ipp>
#endif
