// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace penstock::inline v0_1 {

/// How a run shall work: gathered once from the whole chain, wherever the annotations stand. None of it
/// changes the sequence.
struct run_options {
  /// threads; 0 evaluates in the calling thread; unset: chosen from the machine
  std::optional<unsigned> workers;
  /// bytes of batches and read-ahead; unset: no bound but the depth
  std::optional<std::uint64_t> memory;
  std::optional<std::size_t> depth;  ///< batches in flight, those held by the consumer included
  /// samples whose bytes are asked for before their turn; unset: none, or what a storage with latency needs
  std::optional<std::uint64_t> ahead;
  std::optional<std::uint64_t> ahead_bytes;  ///< the same in bytes, which are then held at most
  std::optional<std::uint64_t> seed;         ///< of random stages; unset: that of the first shuffle, else 0
  std::uint64_t watchdog_ms = 30'000;        ///< says so after this long without a batch; 0: never
};

/// Limits of a run that can move while it works, for `run.adjust`: what is not given stays as it is. None of
/// them changes the sequence. A run without threads has neither workers nor a depth.
struct run_limits {
  /// threads that work; the others rest
  std::optional<std::int64_t> workers{};
  /// batches in flight, in whole blocks where a block holds several; behind `filter`, over forward sources
  /// and in loops without `batch`: chunks of samples in flight
  std::optional<std::int64_t> depth{};
  /// samples whose bytes are asked for before their turn; 0: none
  std::optional<std::int64_t> ahead{};
};

}  // namespace penstock::inline v0_1
