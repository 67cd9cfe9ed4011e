// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/resilience/retried_session.hpp>
#include <penstock/storage/resilience/retry_policy.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

namespace penstock::inline v0_1 {

/// How many reads `throttled` lets through.
struct throttled_options {
  /// reads of a session in flight, at most and at first; unset: 64, in `http_options` as many as
  /// `connections`
  std::optional<std::size_t> max_in_flight{};
  /// A store that asks to wait is obeyed up to this time.
  std::chrono::milliseconds max_retry_after{60'000};
};

namespace detail {
/// Throws errc::argument for options that make no sense.
[[nodiscard]] inline retry_policy policy_of(const throttled_options& options) {
  constexpr std::chrono::milliseconds none{0}, day{86'400'000};
  if (options.max_retry_after < none || options.max_retry_after > day)
    throw error(errc::argument,
                {"throttled waits from 0 ms to a day, not ", options.max_retry_after.count(), " ms"});
  if (options.max_in_flight == 0u)
    throw error(errc::argument,
                "throttled lets at least one read through; write {.max_in_flight = 1} or more");
  return {.max_in_flight = options.max_in_flight.value_or(64), .max_pause = options.max_retry_after};
}
}  // namespace detail

/// Limits how many reads of another storage are in flight, and lowers the limit when the store asks for
/// fewer.
///
///     const memory_files shards;
///     const throttled gentle(simulated_storage(shards, {.slow_down_above = 16}), {.max_in_flight = 32});
///     const auto retried = retrying(throttled(simulated_storage(shards)));
///
/// In: any storage. The limit begins at `max_in_flight`. An `error` that says that the store asked for fewer
/// reads (`error::retry_after_ms`) halves it, once for all the reads in flight at that time, and if the store
/// named a time, no read begins before it is over. As many successful reads as the limit raise it by one, up
/// to `max_in_flight`. The errors themselves pass through: put `retrying` around it.
/// Reads in the background begin in the order of their requests; a thread in `read`, `size` or `version`
/// comes before them.
/// Errors: those of the storage.
/// Cost: one lock when a read begins, and one when it ends; no copy; no allocation in the steady state.
/// Threads: any number of threads may use a session. `cancel` also ends the waits of threads in `read`, with
/// errc::stopped.
/// Source: additive increase and multiplicative decrease, as in D.-M. Chiu and R. Jain, 1989.
template <storage Storage>
class throttled : public detail::retried_storage<throttled<Storage>, Storage> {
  using base = detail::retried_storage<throttled<Storage>, Storage>;

 public:
  explicit throttled(Storage where, throttled_options options = {})
      : base(std::move(where), detail::policy_of(options)) {}

  [[nodiscard]] std::string describe() const {
    return this->describe_as("throttled",
                             detail::text({"at most ", this->policy().max_in_flight, " at once"}));
  }
};

}  // namespace penstock::inline v0_1
