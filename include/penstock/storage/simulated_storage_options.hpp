// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/concepts.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace penstock::inline v0_1 {

/// How a simulated read fails.
enum class simulated_failure : std::uint8_t {
  broken,     ///< as if a connection broke: it may pass
  timed_out,  ///< as if nothing came in time: it may pass
  slow_down,  ///< the store asks for fewer reads, and to wait for `simulated_storage_options::asks_to_wait`
  missing,    ///< as if there were no such object: it recurs
};

/// A range whose reads fail; see `simulated_storage_options`.
struct simulated_fault {
  object_id object = 0;
  std::uint64_t begin = 0;                ///< reads that touch a byte from here
  std::uint64_t end = ~std::uint64_t{0};  ///< up to here fail
  std::uint32_t times = ~0u;              ///< after so many failures, reads succeed; ~0u: all fail
  simulated_failure how = simulated_failure::broken;
};

/// How long `simulated_storage` takes, and what fails.
struct simulated_storage_options {
  std::chrono::microseconds latency{20'000};  ///< of a read
  /// a read takes up to this much longer, by its object and offset
  std::chrono::microseconds jitter{0};
  std::uint64_t seed = 0;                     ///< draws the jitter
  std::size_t max_in_flight = 0;              ///< reads that make progress; others wait. 0: no limit
  double bytes_per_second = 0;                ///< of all reads together; 0: as fast as the underlying storage
  std::chrono::microseconds size_latency{0};  ///< of `size` and `version`
  std::vector<simulated_fault> faults{};
  /// The share of ranges whose first `failing_times` reads by a session fail, as if a connection broke; drawn
  /// from `seed`, object and offset.
  double failing = 0;
  std::uint32_t failing_times = 1;
  /// One read in so many takes `stall` longer; drawn from `seed`, object, offset, and how often the session
  /// read there before. 0: none.
  std::uint64_t stall_one_in = 0;
  std::chrono::microseconds stall{2'000'000};
  /// A read that begins while so many others are in flight is refused: the store asks for fewer. 0: none is.
  std::size_t slow_down_above = 0;
  std::chrono::milliseconds asks_to_wait{0};  ///< what a store that asks for fewer reads asks to wait
};

}  // namespace penstock::inline v0_1
