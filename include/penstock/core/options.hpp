// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

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
  std::optional<std::size_t> depth;    ///< batches in flight, those held by the consumer included
  std::uint64_t ahead = 0;             ///< samples whose bytes are asked for before their turn
  std::optional<std::uint64_t> seed;   ///< of random stages; unset: that of the first shuffle, else 0
  std::uint64_t watchdog_ms = 30'000;  ///< says so after this long without a batch; 0: never
};

}  // namespace penstock::inline v0_1
