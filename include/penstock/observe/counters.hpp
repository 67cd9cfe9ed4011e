// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace penstock::inline v0_1 {

/// What one stage did so far. Times are estimates from the samples that were timed (one in every 64 grains).
struct stage_counters {
  std::string name;
  std::uint64_t samples = 0;
  double busy_seconds = 0;
};

/// The bad samples of a run, on its rank: what `run.bad_samples()` gives.
struct bad_sample_counts {
  std::uint64_t skipped = 0, replaced = 0;  ///< since the run was opened, among what was delivered
  std::uint64_t epoch = 0;                  ///< where the run stands
  std::uint64_t in_epoch = 0;               ///< in that epoch, those before the state it began with included
  std::uint64_t budget = 0;                 ///< how many there may be in an epoch
};

/// What a run did so far: a copy, taken by `run.counters()` at no cost to the workers.
struct run_counters {
  std::vector<stage_counters> stages;  ///< source first
  std::uint64_t samples = 0;           ///< delivered, on this rank
  std::uint64_t bytes = 0;             ///< delivered
  std::uint64_t batches = 0;           ///< delivered; rows in a loop without batches
  unsigned workers = 0;                ///< threads that work now
  double seconds = 0;                  ///< since the run was opened
  double worker_seconds = 0;           ///< the same of all workers together, those that rest left out
  double stall_seconds = 0;            ///< the consumer waited for a batch
  double worker_busy_seconds = 0;      ///< all workers together, evaluating
  double waiting_for_room = 0;         ///< all workers together, seconds without a block to work on
  /// of these, seconds in which the consumer waited for a batch
  double waiting_for_room_in_stall = 0;
  /// all workers together, seconds behind the serial front of a forward source
  double waiting_for_input = 0;
  std::uint64_t skipped = 0, replaced = 0;  ///< bad samples, of those delivered
  std::uint64_t bytes_held = 0;             ///< by batches and chunks, free ones included

  [[nodiscard]] double stall() const { return seconds == 0 ? 0 : stall_seconds / seconds; }
  [[nodiscard]] double samples_per_second() const {
    return seconds == 0 ? 0 : static_cast<double>(samples) / seconds;
  }
  [[nodiscard]] double bytes_per_second() const {
    return seconds == 0 ? 0 : static_cast<double>(bytes) / seconds;
  }
};

/// What a run did between two looks at it, so that it is judged by what it did lately. `before`: of the same
/// run, earlier. Nothing is less than nothing: where `before` is the later one, or of another run that did
/// more, there is 0.
[[nodiscard]] run_counters since(run_counters now, const run_counters& before);

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/observe/counters.ipp>
#endif
