// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/duration_counts.hpp>
#include <penstock/base/fixed_array.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/evaluation/stage_chain.hpp>
#include <penstock/observe/counters.hpp>

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// How long the consumer has waited for batches so far. Only the consumer calls `begin` and `end`; any thread
/// may read, and sees a wait that ends at that moment a few nanoseconds early or late.
class stall_clock {
 public:
  void begin(std::uint64_t now) noexcept {
    state_.store((state_.load(std::memory_order_relaxed) - now) | waits, std::memory_order_relaxed);
  }
  void end(std::uint64_t now) noexcept {
    state_.store((state_.load(std::memory_order_relaxed) + now) & ~waits, std::memory_order_relaxed);
  }
  /// Nanoseconds of all waits, including the current one.
  [[nodiscard]] std::uint64_t at(std::uint64_t now) const noexcept {
    const std::uint64_t state = state_.load(std::memory_order_relaxed);
    if ((state & waits) == 0) return state;
    // 63 bits; negative if `now` is older than the wait
    const std::int64_t total = static_cast<std::int64_t>((state + now) << 1) / 2;
    return static_cast<std::uint64_t>(std::max<std::int64_t>(0, total));
  }

 private:
  static constexpr std::uint64_t waits = std::uint64_t{1} << 63;
  // The total; during a wait, the top bit and the total minus the start time: a single word, so that readers
  // see both.
  std::atomic<std::uint64_t> state_{0};
};

/// A worker's wait for room: when it started, and how long the consumer had waited by then.
struct room_wait {
  std::uint64_t since = 0, stalled = 0;
};

/// What one worker has counted, or the consumer in its seat, one at a time; readable by any thread. For
/// itself, and for the source and each value stage.
class alignas(64) worker_counts {
 public:
  static constexpr std::uint64_t nothing = std::numeric_limits<std::uint64_t>::max();

  std::atomic<std::uint64_t> samples{0}, grains{0}, busy_ns{0}, room_ns{0}, input_ns{0};
  std::atomic<std::uint64_t> room_in_stall_ns{0};  // part of room_ns during which the consumer waited
  std::atomic<std::uint64_t> room_since{0};        // when the current wait for room began, or 0
  // the position being evaluated, or the first of several
  std::atomic<std::uint64_t> at_index{nothing};
  std::atomic<std::uint64_t> at_count{0};
  std::atomic<std::uint64_t> longest_ns{0};  // of a grain
  std::uint64_t run = 1;  // samples of plain values that take about 20 us; the worker's own

  /// Makes room for the costs of the source and `count - 1` value stages; call before the worker starts.
  void follow_stages(std::size_t count);

  /// `n` samples from position `index` on are being evaluated.
  void begin_run(std::uint64_t index, std::uint64_t n) noexcept {
    at_count.store(n, std::memory_order_relaxed);
    at_index.store(index, std::memory_order_relaxed);
  }
  void end_run() noexcept { at_index.store(nothing, std::memory_order_relaxed); }
  void add(std::uint64_t count, std::uint64_t nanoseconds) noexcept;
  void add_busy(std::uint64_t nanoseconds) noexcept {
    busy_ns.store(busy_ns.load(std::memory_order_relaxed) + nanoseconds, std::memory_order_relaxed);
  }
  void add_room(const room_wait& wait, std::uint64_t now, const stall_clock& stall) noexcept;
  /// Publishes the cost of the source and each value stage so far.
  void publish(std::span<const stage_cost> costs) noexcept;
  /// The published cost of one stage, for any thread.
  [[nodiscard]] stage_cost stage(std::size_t number) const noexcept {
    return {stages_[number].nanoseconds.load(std::memory_order_relaxed),
            stages_[number].timed.load(std::memory_order_relaxed)};
  }

 private:
  struct published {
    std::atomic<std::uint64_t> nanoseconds{0}, timed{0};
  };
  detail::fixed_array<published> stages_;
};

/// What the consumer has been given so far. It alone writes; any thread reads.
class alignas(64) consumer_counts {
 public:
  void delivered(std::uint64_t samples, std::uint64_t bytes) noexcept {
    increase(samples_, samples);
    increase(bytes_, bytes);
    waits_.add_alone(std::exchange(waited_ns_, 0));
  }
  void stand_at(std::uint64_t epoch, std::uint64_t step) noexcept {
    epoch_.store(epoch, std::memory_order_relaxed);
    step_.store(step, std::memory_order_relaxed);
  }
  /// Has waited `ns` for a block; `for_slow_sample`: while most of those after it were ready.
  void waited(std::uint64_t ns, bool for_slow_sample) noexcept {
    waited_ns_ += ns;
    if (for_slow_sample) increase(slow_sample_ns_, ns);
  }
  void waited_for_copy(std::uint64_t ns) noexcept { increase(copy_ns_, ns); }
  /// A block of so many batches was taken, with so many warnings.
  void took(std::uint64_t batches, std::uint64_t warnings) noexcept {
    increase(taken_, batches);
    increase(warnings_, warnings);
  }
  void write_to(run_counters& all) const;
  /// Batches of the blocks that were taken.
  [[nodiscard]] std::uint64_t taken() const noexcept { return taken_.load(std::memory_order_relaxed); }

 private:
  using count = std::atomic<std::uint64_t>;
  static void increase(count& one, std::uint64_t by) noexcept {
    one.store(one.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }

  count samples_{0}, bytes_{0}, epoch_{0}, step_{0}, taken_{0}, warnings_{0};
  count slow_sample_ns_{0}, copy_ns_{0};
  std::uint64_t waited_ns_ = 0;  // since the last delivery
  duration_recorder waits_;      // one for each delivery
};

/// What a run's counters showed last. Estimates may fall, and so may what is judged only at its end; whoever
/// collects counters would take that for a run that began again.
class shown_counters {
 public:
  /// Keeps times from falling below those shown before. Any thread.
  void hold(run_counters& all);

 private:
  std::mutex lock_;
  double stall_ = 0, slow_sample_ = 0, other_stall_ = 0, room_ = 0;
  std::vector<double> stages_;
};

/// Adds what the workers counted to the counters of a run; `stages` are the names of the source and the value
/// stages.
void add_worker_counts(run_counters& all, std::span<const worker_counts> workers,
                       const std::vector<std::string>& stages);

/// For the watchdog: appends what the workers are evaluating, or `otherwise` if none is.
void explain_wait(std::string& line, std::span<const worker_counts> workers, const char* otherwise);

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/run/engine/tuning/worker_counts.ipp>
#endif
