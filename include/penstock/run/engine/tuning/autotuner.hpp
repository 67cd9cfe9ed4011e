// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace penstock::inline v0_1 {

/// What `autotune` sets.
struct tuned_limits {
  std::uint64_t workers = 1;
  std::uint64_t depth = 2;  ///< blocks in flight
  std::uint64_t ahead = 0;  ///< samples requested ahead
  std::uint64_t requests = 0;

  /// All of them.
  static constexpr std::array<std::uint64_t tuned_limits::*, 4> all = {
      &tuned_limits::workers, &tuned_limits::depth, &tuned_limits::ahead, &tuned_limits::requests};
  friend bool operator==(const tuned_limits&, const tuned_limits&) = default;
};

/// What a tuner begins with, and what it may set; a limit whose bounds are equal is fixed.
struct tuner_setup {
  tuned_limits start, least, most;
  bool crowded = false;  ///< the loop's thread shares processors with so many workers as at the start
  std::uint64_t within_ns = 10'000'000'000;
};

/// What a run has counted since it was opened.
struct tuner_totals {
  std::uint64_t ns = 0;                ///< the time now
  std::uint64_t stall_ns = 0;          ///< that the consumer waited
  std::uint64_t busy_ns = 0;           ///< of all workers
  std::uint64_t room_in_stall_ns = 0;  ///< all workers: without room while the consumer waited
  std::uint64_t samples = 0, blocks = 0;
  double reading = 0;                           ///< share of the source in the time of all stages
  std::uint64_t max_depth = ~std::uint64_t{0};  ///< blocks for which there is memory
};

/// Decides which limits a run works with. Arithmetic only: the caller says what was counted, and when.
///
/// *Warming*: a look covers more and more blocks until it takes a 200th of the time allowed. *Trying*: the
/// run works for a window of four looks with its limits, and for one with those that the model proposes, in
/// turn, until the difference is clear against the spread of looks, or three times. Before each window the
/// blocks begun under the other limits are left out. A gain of 3 % is kept. A trial that is far slower ends
/// at once. In the last fifth of the time, what was kept is compared with the start. *Quiet*: windows are
/// compared with the first ones; several that differ by a quarter in a row begin it all again, more of them
/// each time.
///
/// The model: with w workers a sample takes the loop as long as its step, or busy time / w, whichever is
/// longer. Waits beyond that come from unequal blocks (workers lack room while the consumer waits), from too
/// little requested ahead (reading takes most of the time), or from processors shared with the step.
class autotuner {
 public:
  explicit autotuner(const tuner_setup& setup);

  /// Blocks until the next look.
  [[nodiscard]] std::uint64_t stride() const noexcept { return stride_; }
  /// Takes the counts up to now, and returns the limits that hold from now on.
  const tuned_limits& look(const tuner_totals& now);
  /// Somebody else has set this limit, and it stays so.
  void fix(std::uint64_t tuned_limits::*which, std::uint64_t value);

  /// The limits in force, which may be those of a trial, and the best ones found.
  [[nodiscard]] const tuned_limits& limits() const noexcept { return now_; }
  [[nodiscard]] const tuned_limits& best() const noexcept { return best_; }
  [[nodiscard]] const tuned_limits& start() const noexcept { return setup_.start; }
  [[nodiscard]] bool quiet() const noexcept { return phase_ == phase::quiet; }
  [[nodiscard]] std::uint64_t searches() const noexcept { return searches_; }
  [[nodiscard]] std::uint64_t trials() const noexcept { return trials_; }
  [[nodiscard]] std::uint64_t kept() const noexcept { return kept_; }

 private:
  enum class phase : std::uint8_t { warming, trying, quiet };
  static constexpr std::uint64_t max_looks = 4, max_pairs = 4, looks_within = 200, windows_within = 10;
  static constexpr std::uint64_t first_patience = 3, max_patience = 24;
  static constexpr std::size_t max_trials = 64;  // of a search
  static constexpr double gain = 0.03, change = 0.25, little_stall = 0.02, more_stall = 0.1;

  /// The measurements under one set of limits.
  struct side {
    double ns = 0, stall = 0, busy = 0, room = 0, reading = 0, samples = 0;
    double looks = 0, each = 0, squares = 0;  // of ns per sample

    void add(const tuner_totals& now, const tuner_totals& before) noexcept;
    [[nodiscard]] double per_sample() const noexcept { return samples > 0 ? ns / samples : 0; }
    [[nodiscard]] double own() const noexcept { return samples > 0 ? (ns - stall) / samples : 0; }
    [[nodiscard]] double variance() const noexcept;  // of a look's time per sample, relative to its square
  };
  enum class outcome : std::uint8_t { unclear, better, worse };

  void begin_search(std::uint64_t now_ns);
  void warm(std::uint64_t ns);
  void search(const tuner_totals& before);
  void watch_for_change(const tuner_totals& before);
  [[nodiscard]] bool is_pause(const tuner_totals& before) noexcept;
  [[nodiscard]] outcome judge() const noexcept;
  [[nodiscard]] bool is_far_slower() const noexcept;
  void end_trial(bool better);
  void try_next();
  void begin_trial(const tuned_limits& limits);
  void rest();
  [[nodiscard]] bool propose(tuned_limits& found) const;
  [[nodiscard]] bool may_try(tuned_limits& limits) const;
  void change_to(const tuned_limits& limits) noexcept;
  [[nodiscard]] bool time_is_up(std::uint64_t fifths) const noexcept {
    return last_.ns - begun_ns_ >= setup_.within_ns / 5 * fifths;
  }

  tuner_setup setup_;
  tuned_limits now_, best_, trial_;
  phase phase_ = phase::warming;
  tuner_totals last_{};
  bool begun_ = false;          // `last_` is set
  std::uint64_t begun_ns_ = 0;  // this search
  std::uint64_t stride_ = 1, looks_ = max_looks;
  std::uint64_t skip_ = 0;  // blocks that still belong to other limits
  side base_, tried_;       // with `best_`, and with `trial_`
  bool on_trial_ = false;
  bool confirming_ = false;                // the trial is that of the start
  bool compared_ = false;                  // `best_` was compared with the start
  std::uint64_t pairs_ = 0, window_ = 0;   // windows of this trial, looks in this window
  std::vector<tuned_limits> done_;         // tried in this search
  std::uint64_t kept_before_ = 0;          // this search
  double own_ = 0, pauses_ = 0;            // ns of the loop's step per sample; looks far above it
  double spread_ = 0;                      // the largest variance so far
  double usual_own_ = 0, usual_each_ = 0;  // per sample, while quiet
  double usual_stall_ = 0;                 // a share
  std::uint64_t odd_ = 0, patience_ = first_patience;
  std::uint64_t searches_ = 0, trials_ = 0, kept_ = 0;
};

/// Limits as stages to copy, those alone that differ from `start`; empty if none does. `depth_is_said`:
/// `prefetch` after `batch` counts what the depth counts.
[[nodiscard]] std::string as_stages(const tuned_limits& limits, const tuned_limits& start,
                                    bool depth_is_said);

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/run/engine/tuning/autotuner.ipp>
#endif
