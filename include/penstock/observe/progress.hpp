// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/observe/counters.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace penstock::inline v0_1 {

/// One line of progress: a bar over the batches of an epoch, samples/s, MB/s and the fraction of time that
/// the loop waited for data.
///
/// On a terminal, the line is rewritten in place, at most ten times a second; elsewhere, one line is written
/// at the end of each epoch. A `tick` between two lines costs a clock read. Use it from one thread.
///
///     progress bar("epoch 3", run.steps_per_epoch());
///     bar.begin(run.counters());
///     for (auto&& b : run.epoch(3)) {
///       train(b);
///       bar.tick([&] { return run.counters(); });
///     }
///     bar.finish(run.counters());
class progress {
  using clock = std::chrono::steady_clock;

 public:
  /// `total`: batches per epoch, 0 if unknown. Writes to `out`.
  progress(std::string label, std::uint64_t total, std::FILE* out = stderr);

  /// Starts the measurement of rates; without it, they count from the opening of the run.
  void begin(const run_counters& counters);
  /// Counts one batch. `counters` is a function that returns a `run_counters`; it is called only when a line
  /// is due.
  template <class Counters>
  void tick(Counters&& counters) {
    ++ticks_;
    if (on_terminal_ && clock::now() - last_ >= std::chrono::milliseconds(100)) write(counters(), false);
  }
  /// Writes the last line of the epoch.
  void finish(const run_counters& counters) { write(counters, true); }

  /// The current line, without the control characters.
  [[nodiscard]] std::string line(const run_counters& counters) const;

 private:
  void write(const run_counters& counters, bool last);

  std::string label_;
  std::uint64_t total_, ticks_ = 0;
  std::FILE* out_;
  bool on_terminal_;
  clock::time_point last_{};
  run_counters first_;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/observe/progress.ipp>
#endif
