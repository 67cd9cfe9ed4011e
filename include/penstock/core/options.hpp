// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/cpp20.hpp>
#include <penstock/core/processor_set.hpp>

#include <optional>

namespace penstock::inline v0_1 {

/// Where the threads that a run starts for its work may run, and how they give way to others: the workers,
/// and the threads that read ahead. See `workers`.
struct worker_options {
  /// all threads may run on any of them; none: where the thread that opens the run may
  processor_set processors{};
  /// 0 to 19, higher gives way more (`man 2 setpriority`); unset: that of the thread that opens the run
  std::optional<int> nice{};
};

/// How bytes that are fetched ahead are requested; see `prefetch`. None of these options changes the bytes.
struct request_options {
  using size = std::optional<std::uint64_t>;

  /// Ranges of an object that lie at most this far apart are one request; unset: 64 KiB for a storage with
  /// latency, otherwise 8 KiB
  size coalesce_gap{};
  /// the most bytes for which neighbours are put together; unset: with latency 8 MiB, or a sixteenth of what
  /// is read ahead if that is less, otherwise 1 MiB
  size max_coalesced{};
  /// with latency, a longer range is requested in parts of at most this size, all at once; 0: never
  std::uint64_t part_size = 16_MiB;
  /// with latency, the most requests in flight; fewer are where more bring nothing; unset: as many as the
  /// storage lets through (http: `connections`), 64 where it has no limit
  std::optional<std::size_t> max_in_flight{};

  [[nodiscard]] constexpr std::uint64_t coalesce_gap_with(bool latency) const noexcept {
    return coalesce_gap.value_or(latency ? 64_KiB : 8_KiB);
  }
  [[nodiscard]] constexpr std::uint64_t max_coalesced_with(bool latency) const noexcept {
    return max_coalesced.value_or(latency ? 8_MiB : 1_MiB);
  }
};

/// The caps of a run that tunes itself, and how long that may take: what `autotune` asks of a run.
struct tuning_caps {
  std::optional<unsigned> processors{};   ///< the most threads that work
  std::optional<std::uint64_t> memory{};  ///< the most bytes of batches and read-ahead
  std::uint64_t within_ms = 10'000;
};

/// How a run works, gathered once from the annotations anywhere in the chain. None of these options changes
/// the sequence.
struct run_options {
  /// worker threads; 0: evaluate in the calling thread; unset: chosen for the machine
  std::optional<unsigned> workers;
  /// processors and nice of the threads that work; without effect if there are none
  worker_options threads{};
  /// bytes of batches and read-ahead; unset: limited only by the depth
  std::optional<std::uint64_t> memory;
  std::optional<std::size_t> depth;  ///< batches in flight, including those held by the consumer
  /// samples whose bytes are requested ahead of their turn; unset: none, or what a storage with latency
  /// needs
  std::optional<std::uint64_t> ahead;
  std::optional<std::uint64_t> ahead_bytes;  ///< read-ahead in bytes, which is also the most that is held
  request_options requests{};                ///< how bytes are fetched ahead
  std::optional<std::uint64_t> seed;         ///< of random stages; unset: see `seed`
  std::uint64_t watchdog_ms = 30'000;        ///< reports this long without a batch; 0: never
  bool allow_empty = false;                  ///< opens even if an epoch is known to have no batch
  std::optional<tuning_caps> autotune{};     ///< tunes the limits that are not given above
};

/// Limits that you can change while a run works, for `run.adjust`. An unset limit stays as it is. None of
/// them changes the sequence. A run without threads has neither workers nor a depth.
struct run_limits {
  /// threads that work; the others are parked
  std::optional<std::int64_t> workers{};
  /// batches in flight, rounded to whole blocks if a block holds several; after `filter`, over forward
  /// sources and in loops without `batch`: chunks of samples in flight
  std::optional<std::int64_t> depth{};
  /// samples whose bytes are requested ahead of their turn; 0: none
  std::optional<std::int64_t> ahead{};
  /// requests in flight, where samples are fetched ahead of a storage with latency; unset in `run.limits()`:
  /// as many as the storage lets through
  std::optional<std::int64_t> requests{};
};

}  // namespace penstock::inline v0_1
