// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/concepts.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace penstock::inline v0_1 {

/// A range whose reads fail; see `simulated_storage_options`.
struct simulated_fault {
  object_id object = 0;
  std::uint64_t begin = 0;                ///< reads that touch a byte from here
  std::uint64_t end = ~std::uint64_t{0};  ///< up to here fail
  std::uint32_t times = ~0u;              ///< after so many failures, reads succeed; ~0u: all fail
};

/// How long `simulated_storage` takes, and what fails.
struct simulated_storage_options {
  std::chrono::microseconds latency{20'000};  ///< of a read
  /// a read takes up to this much longer, by its object and offset
  std::chrono::microseconds jitter{0};
  std::uint64_t seed = 0;                     ///< draws the jitter
  std::size_t at_once = 0;                    ///< reads that make progress; others wait. 0: no limit
  double bytes_per_second = 0;                ///< of all reads together; 0: as fast as the underlying storage
  std::chrono::microseconds size_latency{0};  ///< of `size` and `signature`
  std::vector<simulated_fault> faults{};
};

}  // namespace penstock::inline v0_1
