// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/resilience/retried_session.hpp>
#include <penstock/storage/resilience/retry_policy.hpp>

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace penstock::inline v0_1 {

/// When `hedged` starts a second read.
struct hedged_options {
  double max_extra_requests = 0.05;  ///< second reads per read, at most
  std::size_t observations = 32;     ///< reads of similar size that must have ended before the first one
  std::chrono::microseconds min_delay{2'000};  ///< after which a read may get a second one
  /// of buffers in use, at most; reads beyond that get no second one
  std::uint64_t bytes = 64_MiB;
};

namespace detail {
/// Throws errc::argument for options that make no sense.
[[nodiscard]] inline retry_policy policy_of(const hedged_options& options) {
  if (!(options.max_extra_requests >= 0 && options.max_extra_requests <= 1))
    throw error(errc::argument,
                "hedged starts from 0 to 1 second reads per read; max_extra_requests must be between them");
  constexpr std::chrono::microseconds none{0}, hour{3'600'000'000};
  if (options.min_delay < none || options.min_delay > hour)
    throw error(errc::argument,
                {"hedged waits from 0 us to an hour, not ", options.min_delay.count(), " us"});
  if (options.observations == 0)
    throw error(errc::argument,
                "hedged must have seen at least one read to know which are late; write "
                "{.observations = 1} or more");
  return {.hedges = hedge_rules{options.max_extra_requests, options.observations, options.min_delay,
                                options.bytes}};
}
}  // namespace detail

/// Starts a second read of the same bytes when one of another storage is late; the first of the two to end
/// wins. So a few reads that take very long do not hold up the rest.
///
///     const memory_files shards;
///     const simulated_storage far(shards, {.stall_one_in = 100});
///     const auto careful = retrying(throttled(hedged(far)));
///
/// In: a storage whose session is a `background_session`. A read is late after the larger of two times: that
/// which 98 % of the last 256 reads of similar size stayed below, and three times their median. At most
/// `max_extra_requests` second reads are started per read, so that a store that is slow as a whole is not
/// asked twice.
/// Put `retrying` and `throttled` around it: inside, their waits would count as late reads.
/// Blocking reads go through `read_many` of the storage, too.
/// Memory: each second read has a buffer of its own until both reads have ended, and its bytes are copied if
/// it wins. If the session inside can `abandon` a read, nothing else is copied: the late read is
/// abandoned, and its caller gets the bytes when it has ended. Otherwise first reads have buffers, too, and
/// are copied once. All buffers together are at most `bytes`, which `memory(bytes)` of a run does not bound;
/// `storage_counters::held` says how many are in use.
/// Errors: that of the first read, if the second failed, too, or was not started.
/// Cost: two locks per read; in the steady state no allocation but that of a second read, or of the buffer of
/// a first one that is larger than 1 MiB.
/// Threads: any number of threads may use a session. `cancel` also ends blocking reads, with errc::stopped.
/// Source: J. Dean and L. A. Barroso, "The Tail at Scale", 2013.
template <storage Storage>
class hedged : public detail::retried_storage<hedged<Storage>, Storage> {
  using base = detail::retried_storage<hedged<Storage>, Storage>;
  static constexpr bool in_background = background_session<typename Storage::session>;
  static_assert(
      in_background,
      "penstock: hedged needs a storage that reads in the background (read_many), such as http, s3, "
      "uring_file or simulated_storage; file, mapped_file and memory_files do not");

 public:
  explicit hedged(Storage where, hedged_options options = {})
      : base(std::move(where), detail::policy_of(options)) {}

  [[nodiscard]] std::string describe() const {
    return this->describe_as(
        "hedged", detail::text({"at most ", std::lround(this->policy().hedges->max_extra_requests * 100),
                                " % more reads"}));
  }
};

}  // namespace penstock::inline v0_1
