// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/observe/counters.hpp>

#include <chrono>
#include <cstdio>
#include <string_view>
#include <utility>

namespace penstock::inline v0_1 {

namespace detail {

bool is_terminal(std::FILE* out);

}  // namespace detail

/// One line of progress: a bar over the batches of an epoch, the time that passed and the time that is left,
/// numbers of yours, samples/s, MB/s, and the stall as `report` has it (`run_counters::stall`), as in "epoch
/// 3 [######..................] 25/100  0:05, 0:15 left  loss 0.693  640 samples/s  96.3 MB/s  stall 1.2%".
///
/// On a terminal, the line is rewritten in place, at most ten times a second, and is cut where the terminal
/// ends; elsewhere, one line is written at the end of each epoch. A `tick` between two lines costs a clock
/// read. Use it from one thread.
///
///     progress bar("epoch 3", run.steps_per_epoch());
///     bar.begin(run.counters());
///     for (auto&& b : run.epoch(3)) {
///       const double loss = train(b);
///       bar.show("loss", loss);
///       bar.tick([&] { return run.counters(); });
///     }
///     bar.finish(run.counters());
class progress {
  using clock = std::chrono::steady_clock;

 public:
  /// `total`: batches per epoch, 0 if unknown. Writes to `out`.
  progress(std::string label, std::uint64_t total, std::FILE* out = stderr)
      : label_(std::move(label)), total_(total), out_(out), on_terminal_(detail::is_terminal(out)) {}

  /// Starts the measurement of times and rates; without it, they count from the opening of the run. `done`:
  /// batches of the epoch that were delivered before, as of a run that is restored within it
  /// (`run.state().step`).
  void begin(const run_counters& counters, std::uint64_t done = 0);
  /// Shows a number behind the times from now on: a loss, an accuracy, a learning rate. Allocates for a new
  /// name only.
  void show(std::string_view name, double value);
  /// Counts one batch. `counters` is a function that returns a `run_counters`; it is called only when a line
  /// is due.
  void tick(auto&& counters) {
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
  std::uint64_t total_, done_ = 0, ticks_ = 0;
  std::FILE* out_;
  bool on_terminal_;
  clock::time_point last_{};
  run_counters first_;
  std::vector<std::pair<std::string, double>> numbers_;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/observe/progress.ipp>
#endif
