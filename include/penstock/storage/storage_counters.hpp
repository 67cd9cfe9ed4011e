// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/duration_counts.hpp>
#include <penstock/core/cpp20.hpp>

#include <array>
#include <cstdint>

namespace penstock::inline v0_1 {

/// What a session has done so far. Of several storages around one another, the innermost one that counts says
/// what went to the store: `requests`, `bytes` and `slow_downs`; each of them adds what it did itself.
struct storage_counters {
  std::uint64_t requests = 0;    ///< reads sent to the store, including repeated ones
  std::uint64_t bytes = 0;       ///< received by reads that succeeded
  std::uint64_t slow_downs = 0;  ///< answers that asked for fewer reads
  std::uint64_t retries = 0;     ///< reads tried again by `retrying`
  std::uint64_t given_up = 0;    ///< reads that failed although trying once more might have helped
  std::uint64_t throttled = 0;   ///< how often `throttled` halved its limit
  std::uint64_t hedges = 0;      ///< second reads started by `hedged`
  std::uint64_t hedges_won = 0;  ///< those that ended before the first
  std::uint64_t held = 0;        ///< bytes in buffers of its own now, such as those of second reads
  std::uint64_t hits = 0;        ///< reads of a block that was in a cache
  std::uint64_t fetched = 0;     ///< blocks that a cache fetched
  std::uint64_t refetched = 0;   ///< those of them that had been there, and were damaged
  std::uint64_t evicted = 0;     ///< blocks that went from a cache to make place
  std::uint64_t corrupt = 0;     ///< reads from a cache that did not match their checksums
  std::uint64_t uncached = 0;    ///< reads, and blocks, that a cache could not help with or keep

  /// All of them; `held` is a state, and not a sum.
  static constexpr std::array all = {
      &storage_counters::requests, &storage_counters::bytes,      &storage_counters::slow_downs,
      &storage_counters::retries,  &storage_counters::given_up,   &storage_counters::throttled,
      &storage_counters::hedges,   &storage_counters::hedges_won, &storage_counters::held,
      &storage_counters::hits,     &storage_counters::fetched,    &storage_counters::refetched,
      &storage_counters::evicted,  &storage_counters::corrupt,    &storage_counters::uncached};

  storage_counters& operator+=(const storage_counters& other) noexcept {
    for (const auto one : all) this->*one += other.*one;
    return *this;
  }
  friend bool operator==(const storage_counters&, const storage_counters&) = default;
};

/// The requests to a store that have ended; `storage_counters::requests` has those in flight, too.
struct store_requests {
  std::uint64_t answered = 0;   ///< with what was asked for
  std::uint64_t failed = 0;     ///< with an error, such as an answer that asks for fewer requests, or none
  std::uint64_t cancelled = 0;  ///< given up: at the end of a run, or as another one was faster
  duration_counts durations{};  ///< from when each was sent to its end

  store_requests& operator+=(const store_requests& other) noexcept {
    answered += other.answered;
    failed += other.failed;
    cancelled += other.cancelled;
    durations += other.durations;
    return *this;
  }
  friend bool operator==(const store_requests&, const store_requests&) = default;
};

}  // namespace penstock::inline v0_1
