// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/message.hpp>
#include <penstock/core/part.hpp>
#include <penstock/evaluation/parts.hpp>
#include <penstock/evaluation/stage_chain.hpp>
#include <penstock/observe/counters.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// How long the consumer has waited for batches so far. The consumer alone calls `begin` and `end`; anyone
/// may look, and sees a wait that ends at that moment early or late by a few nanoseconds.
class stall_clock {
 public:
  void begin(std::uint64_t now) noexcept {
    state_.store((state_.load(std::memory_order_relaxed) - now) | waits, std::memory_order_relaxed);
  }
  void end(std::uint64_t now) noexcept {
    state_.store((state_.load(std::memory_order_relaxed) + now) & ~waits, std::memory_order_relaxed);
  }
  /// Nanoseconds of all waits, that of now included.
  [[nodiscard]] std::uint64_t at(std::uint64_t now) const noexcept {
    const std::uint64_t state = state_.load(std::memory_order_relaxed);
    if ((state & waits) == 0) return state;
    // of 63 bits; below zero where `now` is older than the wait
    const std::int64_t total = static_cast<std::int64_t>((state + now) << 1) / 2;
    return static_cast<std::uint64_t>(std::max<std::int64_t>(0, total));
  }

 private:
  static constexpr std::uint64_t waits = std::uint64_t{1} << 63;
  // The total; during a wait the top bit, and the total less the time of its begin: one word, so that who
  // looks sees both.
  std::atomic<std::uint64_t> state_{0};
};

/// A worker's wait for room: since when, and how long the consumer had waited by then.
struct room_wait {
  std::uint64_t since = 0, stalled = 0;
};

/// What one worker has counted, written by it alone and read by anyone: the source and `Stages - 1` value
/// stages.
template <std::size_t Stages>
struct alignas(64) worker_counts {
  static constexpr std::uint64_t nothing = std::numeric_limits<std::uint64_t>::max();

  std::atomic<std::uint64_t> samples{0}, grains{0}, busy_ns{0}, room_ns{0}, input_ns{0};
  std::atomic<std::uint64_t> room_in_stall_ns{0};  // of room_ns, while the consumer waited
  // the position that is being evaluated, or the first one of some
  std::atomic<std::uint64_t> at_index{nothing};
  std::atomic<std::uint64_t> at_count{0};
  std::uint64_t run = 1;  // samples of a plain plan to evaluate without looking around; the worker's own
  std::atomic<std::uint64_t> stage_ns[Stages]{};
  std::atomic<std::uint64_t> stage_timed[Stages]{};

  /// `n` samples from position `index` on are evaluated now.
  void begin_run(std::uint64_t index, std::uint64_t n) noexcept {
    at_count.store(n, std::memory_order_relaxed);
    at_index.store(index, std::memory_order_relaxed);
  }
  void end_run() noexcept { at_index.store(nothing, std::memory_order_relaxed); }
  /// Adds up one grain.
  void add(std::uint64_t count, std::uint64_t nanoseconds) noexcept {
    grains.store(grains.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    samples.store(samples.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
    busy_ns.store(busy_ns.load(std::memory_order_relaxed) + nanoseconds, std::memory_order_relaxed);
    if (count != 0) run = std::clamp<std::uint64_t>(20'000 * count / (nanoseconds + 1), 1, 8192);
  }
  /// Adds a wait for room that ends now.
  void add_room(const room_wait& wait, std::uint64_t now, const stall_clock& stall) noexcept {
    const std::uint64_t length = now - wait.since, stalled = stall.at(now);
    room_ns.fetch_add(length, std::memory_order_relaxed);
    if (stalled > wait.stalled)
      room_in_stall_ns.fetch_add(std::min(length, stalled - wait.stalled), std::memory_order_relaxed);
  }
  template <class Worker>
  void publish(Worker& scratch) noexcept {
    detail::for_each_cost(scratch, [&](std::size_t number, const stage_cost& cost) {
      stage_ns[number].store(cost.nanoseconds, std::memory_order_relaxed);
      stage_timed[number].store(cost.timed, std::memory_order_relaxed);
    });
  }
};

/// Adds what the workers counted to the counters of a run, with the names of the plan's source and value
/// stages.
template <class Plan, std::size_t Stages>
void add_worker_counts(run_counters& all, const std::vector<worker_counts<Stages>>& workers, const Plan& p) {
  std::vector<std::uint64_t> ns(Stages), timed_samples(Stages);
  std::uint64_t samples = 0;
  for (const auto& w : workers) {
    samples += w.samples.load(std::memory_order_relaxed);
    all.worker_busy_seconds += static_cast<double>(w.busy_ns.load(std::memory_order_relaxed)) * 1e-9;
    all.waiting_for_room += static_cast<double>(w.room_ns.load(std::memory_order_relaxed)) * 1e-9;
    all.waiting_for_room_in_stall +=
        static_cast<double>(w.room_in_stall_ns.load(std::memory_order_relaxed)) * 1e-9;
    all.waiting_for_input += static_cast<double>(w.input_ns.load(std::memory_order_relaxed)) * 1e-9;
    for (std::size_t i = 0; i < Stages; ++i) {
      ns[i] += w.stage_ns[i].load(std::memory_order_relaxed);
      timed_samples[i] += w.stage_timed[i].load(std::memory_order_relaxed);
    }
  }
  const auto add = [&](std::string name) {
    const std::size_t i = all.stages.size();
    const double each =
        timed_samples[i] == 0 ? 0 : static_cast<double>(ns[i]) / static_cast<double>(timed_samples[i]);
    all.stages.push_back({std::move(name), samples, each * static_cast<double>(samples) * 1e-9});
  };
  add(std::string(Plan::source_type::source_name));
  const auto one = [&]<class Stage>(const Stage& stage) {
    if constexpr (value_stage<Stage>) add(text_of_stage(stage));
  };
  p.stages().apply([&](const auto&... stages) { (one(stages), ...); });
}

/// For the watchdog: appends what the workers are at, or `otherwise` where none evaluates.
template <std::size_t Stages>
[[gnu::cold]] void explain_wait(std::string& line, const std::vector<worker_counts<Stages>>& workers,
                                const char* otherwise) {
  bool any = false;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    const std::uint64_t index = workers[i].at_index.load(std::memory_order_relaxed);
    if (index == worker_counts<Stages>::nothing) continue;
    const std::uint64_t count = workers[i].at_count.load(std::memory_order_relaxed);
    detail::append(line, {any ? "; worker " : "worker ", i, ", which evaluates "});
    if (count != 1) detail::append(line, {"one of ", count, " samples from "});
    detail::append(line, {"position ", index});
    any = true;
  }
  if (!any) line += otherwise;
}

}  // namespace penstock::inline v0_1
