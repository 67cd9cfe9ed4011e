// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>

#include <cstddef>
#include <cstdint>
#include <stop_token>

namespace penstock::inline v0_1 {

/// How `stage_to` reads, and how to end it.
struct stage_options {
  std::size_t max_in_flight = 8;  ///< requests in flight
  std::size_t part_size = 8_MiB;  ///< bytes of a request
  std::stop_token stop = {};      ///< ends the call with errc::stopped
};

/// How far a call of `stage_to` is.
struct stage_progress {
  std::size_t objects_done = 0;  ///< complete, whoever fetched them
  std::size_t objects = 0;
  std::uint64_t bytes_done = 0;  ///< of those, and of what this call is at
  std::uint64_t bytes = 0;       ///< of all objects that were asked for their size so far
  std::uint64_t fetched = 0;     ///< that this call read from the storage
};

}  // namespace penstock::inline v0_1
