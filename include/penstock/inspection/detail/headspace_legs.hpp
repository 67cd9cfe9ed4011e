// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/evaluation/parts.hpp>
#include <penstock/inspection/detail/repeated_samples.hpp>
#include <penstock/observe/counters.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <stop_token>
#include <thread>
#include <vector>

/// How `headspace` measures: loops that take turns.
namespace penstock::inline v0_1::detail {

/// What the threads of this process took of its processors so far, in seconds.
struct processor_use {
  double used = 0;
  double waited = 0;  ///< ready to run while others had the processor; 0 if the system does not say
};
[[nodiscard]] processor_use processor_use_now();

/// What one loop took, in seconds per step.
struct headspace_leg {
  std::vector<double> turns;
  std::vector<processor_use> uses{};  ///< of a step, in each turn
  processor_use use{};
  run_counters counters{};  ///< of all turns together
  std::uint64_t steps = 0;

  /// The median of the turns; 0 without any.
  [[nodiscard]] double seconds() const;
  /// Per step.
  [[nodiscard]] processor_use use_of_step() const;
  [[nodiscard]] double busy_of_step(std::size_t stage) const;
};

/// How long turns are.
struct headspace_limits {
  std::uint64_t batches = 0;
  std::chrono::nanoseconds at_least{};
  std::chrono::nanoseconds turn{};  ///< the most that a turn may take
  std::stop_token stop{};
};

/// The clock of one turn: first a warm-up, and then the steps that count.
class headspace_turn {
  using clock = std::chrono::steady_clock;

 public:
  explicit headspace_turn(const headspace_limits& limits) : limits_(&limits) {}

  [[nodiscard]] bool stopped() const noexcept { return limits_->stop.stop_requested(); }
  /// Whether less than this part of the turn's time has passed.
  [[nodiscard]] bool before(double part) const {
    return !stopped() && std::chrono::duration<double>(clock::now() - begin_) <
                             part * std::chrono::duration<double>(limits_->turn);
  }

  void start(const run_counters& now);
  /// After a step: whether one more is to be measured.
  [[nodiscard]] bool goes_on() {
    ++steps_;
    end_ = clock::now();
    return !stopped() && end_ - begin_ < limits_->turn &&
           (steps_ < limits_->batches || end_ - start_ < limits_->at_least);
  }
  void end(headspace_leg& leg, const run_counters& now);

 private:
  const headspace_limits* limits_;
  clock::time_point begin_ = clock::now(), start_{}, end_{};
  std::uint64_t steps_ = 0;
  processor_use use_{};
  run_counters counters_{};
};

/// The batches of a run, epoch after epoch.
template <class Run>
class endless_batches {
 public:
  explicit endless_batches(Run& run)
      : epoch_(run.epochs(std::uint64_t{1} << 32).begin()), at_((*epoch_).begin()) {}

  /// The next one; null if the run was stopped, or two epochs in a row have none.
  [[nodiscard]] typename Run::value_type* next(const Run& run) {
    if (begun_) ++at_;
    begun_ = true;
    for (unsigned empty = 0; at_ == std::default_sentinel; ++empty) {
      if (empty == 2 || run.stopped()) return nullptr;
      ++epoch_;
      at_ = (*epoch_).begin();
    }
    return &*at_;
  }

 private:
  typename Run::epochs_range::iterator epoch_;
  typename Run::iterator at_;
  bool begun_ = false;
};

/// Takes what is ready, until the consumer waits for a batch: so that no turn lives on what was made before
/// it.
template <class Run>
void take_ready(Run& run, endless_batches<Run>& batches, const headspace_turn& turn) {
  const run_counters before = run.counters();
  if (before.workers == 0) return;
  std::uint64_t left = before.depth;
  if constexpr (!plan_parts<typename Run::plan_type>::direct) left *= 4096;  // of chunks
  while (left-- != 0 && turn.before(0.25) && batches.next(run) != nullptr)
    if (run.counters().stall_seconds > before.stall_seconds) return;
}

/// Waits until the workers of a run have no room to go on, so that they do not disturb what is measured next.
/// `piece`: seconds that a piece of their work may take.
template <class Run>
void wait_until_idle(const Run& run, double piece, const headspace_turn& turn) {
  run_counters now = run.counters();
  if (now.workers == 0) return;
  const auto pause = std::chrono::duration<double>(std::clamp(piece * now.workers, 1e-3, 1.0));
  for (double before = -1; now.worker_busy_seconds != before && turn.before(1); now = run.counters()) {
    before = now.worker_busy_seconds;
    std::this_thread::sleep_for(pause);
  }
}

/// Takes batches until the samples that are repeated are all there.
template <class Run>
void fill_repeated(Run& run, endless_batches<Run>& batches, const headspace_turn& turn) {
  std::uint64_t kept = 0, since = 0;  // the number of samples when the last one was kept
  while (turn.before(0.5) && batches.next(run) != nullptr) {
    const run_counters now = run.counters();
    if (now.kept.samples != kept) kept = now.kept.samples, since = now.samples;
    if (now.samples - since >= kept_by_place::places) return;
  }
}

/// One turn of a leg: `one()` takes a step, and returns whether there was one; `counters()` are those of the
/// run. Returns whether the turn was measured. A block may hold several batches; so a loop that waits now and
/// then is measured from one wait to another.
template <class One, class Counters>
bool take_turn(headspace_turn& turn, headspace_leg& leg, std::uint64_t warm_up, One one, Counters counters) {
  constexpr int longest_block = 16;
  const double before = counters().stall_seconds;
  for (std::uint64_t i = 0; i < warm_up && turn.before(0.5); ++i)
    if (!one()) return false;
  for (int i = 0; i < longest_block && turn.before(0.5); ++i) {
    const double stalled = counters().stall_seconds;
    if (stalled == before) break;
    if (!one()) return false;
    if (counters().stall_seconds > stalled) break;
  }
  const double start = counters().stall_seconds;
  turn.start(counters());
  do {
    if (!one()) return false;
  } while (turn.goes_on());
  for (int i = 0; i < longest_block && turn.before(1); ++i) {
    const double stalled = counters().stall_seconds;
    if (stalled == start) break;
    if (!one()) return false;
    (void)turn.goes_on();
    if (counters().stall_seconds > stalled) break;
  }
  turn.end(leg, counters());
  return true;
}

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/inspection/detail/headspace_legs.ipp>
#endif
