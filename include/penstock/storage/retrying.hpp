// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/resilience/retried_session.hpp>
#include <penstock/storage/resilience/retry_policy.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

namespace penstock::inline v0_1 {

/// How often `retrying` tries a read, and how long it waits before.
struct retrying_options {
  std::uint32_t attempts = 10;  ///< of each read, including the first
  /// The wait before attempt n + 1 is a random part of the smaller of `initial_backoff` * 2^(n - 1) and
  /// `max_backoff`.
  std::chrono::milliseconds initial_backoff{100};
  std::chrono::milliseconds max_backoff{20'000};
  /// A store that asks to wait is obeyed up to this time; the random wait comes on top.
  std::chrono::milliseconds max_retry_after{60'000};
  /// No attempt begins later than this after the first one failed.
  std::chrono::milliseconds max_time{90'000};
  /// The same for a server to which no connection can be made (`error::unreachable`).
  std::chrono::milliseconds max_unreachable_time{15'000};
  /// Tokens of a session. A retry takes 5, one after a time-out 10, one that the store asked to wait for 1; a
  /// read that succeeds gives 1 back, and 5 if it was tried again. A read that finds too few fails. 0: any
  /// number of retries.
  std::uint64_t budget = 500;
  /// Draws the waits, by object, offset and attempt; without one, each session draws others, so that many
  /// programs do not ask at the same moment.
  std::optional<std::uint64_t> seed = {};
};

namespace detail {
/// Throws errc::argument for options that make no sense.
[[nodiscard]] inline retry_policy policy_of(const retrying_options& options, std::stop_token stop = {}) {
  constexpr std::chrono::milliseconds none{0}, day{86'400'000};
  for (const auto time : {options.initial_backoff, options.max_backoff, options.max_retry_after,
                          options.max_time, options.max_unreachable_time}) {
    if (time < none || time > day)
      throw error(errc::argument, {"retrying waits from 0 ms to a day, not ", time.count(), " ms"});
  }
  if (options.attempts == 0)
    throw error(errc::argument,
                "retrying makes at least one attempt; write {.attempts = 1} to try nothing again");
  return {.attempts = options.attempts,
          .initial_backoff = options.initial_backoff,
          .max_backoff = options.max_backoff,
          .max_retry_after = options.max_retry_after,
          .max_time = options.max_time,
          .max_unreachable_time = options.max_unreachable_time,
          .budget = options.budget,
          .seed = options.seed,
          .stop = std::move(stop)};
}
}  // namespace detail

/// Tries reads of another storage again if their failure may pass.
///
///     const memory_files shards;
///     const auto retried = retrying(simulated_storage(shards, {.failing = 0.01}));
///     const retrying hasty(shards, {.attempts = 2, .initial_backoff = std::chrono::milliseconds(10)});
///
/// In: any storage. What is tried again: `read`, `size`, `version` and the reads of `read_many`, if they
/// throw an `error` whose `recurs()` is false: those are failures of input and output that were not marked as
/// recurring. Everything else passes through, such as views, which are not tried again.
/// Waits: exponential back-off with full jitter, and at least as long as the store asked
/// (`error::retry_after_ms`). Reads in the background wait in a queue: other reads overtake them, and one
/// thread of the session, started by the first `read_many`, watches the clock.
/// A budget bounds the retries of all reads together: 100 in a row by default, so that a store that is down
/// gets hardly more requests than one that is well.
/// Errors: the last one, with the number of attempts in its sentence.
/// Cost: two counters per read; no copy; no allocation in the steady state, except for errors.
/// Threads: any number of threads may use a session. `cancel` also ends the waits of threads in `read`, with
/// errc::stopped.
/// Source: M. Brooker, "Exponential Backoff And Jitter", 2015; AWS SDKs, retry mode "standard".
template <storage Storage>
class retrying : public detail::retried_storage<retrying<Storage>, Storage> {
  using base = detail::retried_storage<retrying<Storage>, Storage>;

 public:
  /// `stop` ends all waits of all sessions, and their reads in the background, with errc::stopped, while a
  /// plan is made as while it runs.
  explicit retrying(Storage where, retrying_options options = {}, std::stop_token stop = {})
      : base(std::move(where), detail::policy_of(options, std::move(stop))) {}

  [[nodiscard]] std::string describe() const {
    return this->describe_as("retrying", detail::text({this->policy().attempts, " attempts"}));
  }
};

}  // namespace penstock::inline v0_1
