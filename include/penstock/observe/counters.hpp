// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/duration_counts.hpp>
#include <penstock/core/cached_form.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/storage/storage_counters.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace penstock::inline v0_1 {

/// The counters of one stage. Times are estimates from the samples that were timed (one in every 64 grains).
struct stage_counters {
  std::string name;
  std::uint64_t samples = 0;
  double busy_seconds = 0;
};

/// The bad samples of a run on its rank, as `run.bad_samples()` returns them.
struct bad_sample_counts {
  std::uint64_t skipped = 0, replaced = 0;  ///< since the run was opened, in what was delivered
  std::uint64_t epoch = 0;                  ///< the run's current epoch
  std::uint64_t in_epoch = 0;               ///< in that epoch, including those before the starting state
  std::uint64_t budget = 0;                 ///< the maximum number per epoch
};

/// What `autotune` has done in a run.
struct autotune_counters {
  bool tunes = false;  ///< whether the plan has `autotune`, and threads to tune
  bool quiet = false;  ///< no trial is going on
  std::uint64_t trials = 0;
  std::uint64_t kept = 0;  ///< trials whose limits were faster, and became the run's
  /// the best limits found, as stages to copy: those alone that differ from the defaults
  std::string stages;
};

/// The counters of a run: a copy, taken by `run.counters()` at no cost to the workers.
struct run_counters {
  std::vector<stage_counters> stages;  ///< source first
  bool source_computes = false;        ///< the source reads nothing: samples are made by a function
  std::uint64_t samples = 0;           ///< delivered, on this rank
  std::uint64_t bytes = 0;             ///< delivered
  std::uint64_t batches = 0;           ///< delivered; without batches, rows
  unsigned workers = 0;                ///< threads that work now
  /// batches in flight at most, those of the consumer included; chunks of samples after `filter`, over
  /// forward sources and in loops without `batch`
  std::uint64_t depth = 0;
  double seconds = 0;         ///< since the run was opened
  double worker_seconds = 0;  ///< `seconds` of all workers together, excluding parked ones
  double stall_seconds = 0;   ///< time the consumer waited for a batch, or helped to make it
  /// the part of `stall_seconds` at whose end most of the blocks after the one awaited were ready: the
  /// consumer waited for a slow sample
  double stall_on_slow_sample = 0;
  double waiting_for_copy = 0;  ///< seconds the consumer waited for copies to the device, beside the stall
  /// How long the consumer waited for each batch or row that was delivered; without workers, how long it
  /// took to make. Those that came with others in one block took no time.
  duration_counts block_waits{};
  std::uint64_t epoch = 0;  ///< of what was delivered last
  /// batches of that epoch delivered so far; without batches, rows before the latest chunk
  std::uint64_t step = 0;
  std::uint64_t ready = 0;         ///< batches that are ready and not yet requested; chunks as with `depth`
  double worker_busy_seconds = 0;  ///< all workers together: time spent evaluating
  double waiting_for_room = 0;     ///< all workers together: seconds without a block to work on
  /// the part of `waiting_for_room` during which the consumer waited for a batch
  double waiting_for_room_in_stall = 0;
  /// all workers together: seconds spent waiting at the serial front of a forward source
  double waiting_for_input = 0;
  /// the longest time that a worker was at one sample, or at a few short ones that it takes together, since
  /// the run was opened; 0 after `filter`, over forward sources and in loops without `batch`
  double longest_sample_seconds = 0;
  std::uint64_t skipped = 0, replaced = 0;  ///< bad samples among those delivered
  /// Samples that were damaged and delivered as far as they could be decoded, as with a codec's `recover`;
  /// once for each damaged image, also if a later stage dropped it. In the blocks of samples from which
  /// anything was delivered: at the end of an epoch, the epoch's, whatever the number of workers. In the
  /// middle of one, some may be of samples of such a block that are not delivered yet; a run that is restored
  /// there reads them again, and counts them again.
  std::uint64_t warnings = 0;
  /// What the storage did for this run, if its sessions count: `http`, `s3`, `simulated_storage`, and what
  /// `retrying`, `throttled` and `hedged` make of any storage. Excludes what a source read when it was made.
  storage_counters storage{};
  store_requests storage_requests{};  ///< those of them that have ended
  kept_counters kept{};               ///< by `keep_in_memory`
  autotune_counters autotune{};
  /// memory of batches and chunks, including free ones, of what is fetched ahead, `storage.held` and
  /// `kept.bytes`
  std::uint64_t bytes_held = 0;

  /// The fraction of its time that the consumer waited for data, as `report` and `progress` show it. Without
  /// workers the consumer makes its batches itself, and that time counts.
  [[nodiscard]] double stall() const {
    return seconds == 0 ? 0 : (workers == 0 ? worker_busy_seconds : stall_seconds) / seconds;
  }
  [[nodiscard]] double samples_per_second() const {
    return seconds == 0 ? 0 : static_cast<double>(samples) / seconds;
  }
  [[nodiscard]] double bytes_per_second() const {
    return seconds == 0 ? 0 : static_cast<double>(bytes) / seconds;
  }
};

/// The difference between two copies of a run's counters, to judge it by its recent work. `before` is the
/// earlier copy. No counter goes below 0: if `before` is the later copy, or of another run that did more,
/// the result is 0.
[[nodiscard]] run_counters since(run_counters now, const run_counters& before);

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/observe/counters.ipp>
#endif
