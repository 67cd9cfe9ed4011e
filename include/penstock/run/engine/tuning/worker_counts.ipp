// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/engine/tuning/worker_counts.hpp>

#include <penstock/core/message.hpp>
#include <penstock/run/engine/tuning/tuning.hpp>

#include <cmath>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE void worker_counts::follow_stages(std::size_t count) {
  stages_ = detail::fixed_array<published>(count);
}

PENSTOCK_INLINE void worker_counts::add(std::uint64_t count, std::uint64_t nanoseconds) noexcept {
  grains.store(grains.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  samples.store(samples.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
  busy_ns.store(busy_ns.load(std::memory_order_relaxed) + nanoseconds, std::memory_order_relaxed);
  if (nanoseconds > longest_ns.load(std::memory_order_relaxed))
    longest_ns.store(nanoseconds, std::memory_order_relaxed);
  if (count != 0)
    run = std::clamp<std::uint64_t>(tuning::run_time * count / (nanoseconds + 1), 1, tuning::run_samples);
}

PENSTOCK_INLINE void worker_counts::add_room(const room_wait& wait, std::uint64_t now,
                                             const stall_clock& stall) noexcept {
  const std::uint64_t length = now - wait.since, stalled = stall.at(now);
  room_ns.fetch_add(length, std::memory_order_relaxed);
  if (stalled > wait.stalled)
    room_in_stall_ns.fetch_add(std::min(length, stalled - wait.stalled), std::memory_order_relaxed);
}

PENSTOCK_INLINE void worker_counts::publish(std::span<const stage_cost> costs) noexcept {
  for (std::size_t i = 0; i < costs.size(); ++i) {
    stages_[i].nanoseconds.store(costs[i].nanoseconds, std::memory_order_relaxed);
    stages_[i].timed.store(costs[i].timed, std::memory_order_relaxed);
  }
}

PENSTOCK_INLINE void consumer_counts::write_to(run_counters& all) const {
  const auto read = [](const count& one) { return one.load(std::memory_order_relaxed); };
  all.samples = read(samples_);
  all.bytes = read(bytes_);
  all.epoch = read(epoch_);
  all.step = read(step_);
  all.warnings = read(warnings_);
  all.stall_on_slow_sample = static_cast<double>(read(slow_sample_ns_)) * 1e-9;
  all.waiting_for_copy = static_cast<double>(read(copy_ns_)) * 1e-9;
  all.block_waits = waits_.read();
  all.batches = all.block_waits.count();
}

PENSTOCK_INLINE void shown_counters::hold(run_counters& all) {
  // Multiples of 2^-30 s, so that differences are exact.
  const auto raise = [](double& shown, double now) {
    return shown = std::max(shown, std::floor(now * 0x1p30) * 0x1p-30);
  };
  const std::lock_guard guard(lock_);
  stages_.resize(all.stages.size());
  for (std::size_t i = 0; i < stages_.size(); ++i)
    all.stages[i].busy_seconds = raise(stages_[i], all.stages[i].busy_seconds);
  all.waiting_for_room = raise(room_, all.waiting_for_room);
  // A wait that lasts has no reason yet; what it has shown without one stays so.
  all.stall_seconds = raise(stall_, all.stall_seconds);
  raise(slow_sample_, all.stall_on_slow_sample);
  all.stall_on_slow_sample = stall_ - raise(other_stall_, std::max(0.0, stall_ - slow_sample_));
}

PENSTOCK_INLINE void add_worker_counts(run_counters& all, std::span<const worker_counts> workers,
                                       const std::vector<std::string>& stages) {
  const auto seconds = [](const std::atomic<std::uint64_t>& ns) {
    return static_cast<double>(ns.load(std::memory_order_relaxed)) * 1e-9;
  };
  std::uint64_t samples = 0, unended = 0;  // unended: waits for room
  const std::uint64_t now = detail::now_ns();
  for (const worker_counts& w : workers) {
    const std::uint64_t since = w.room_since.load(std::memory_order_relaxed);
    if (since != 0 && since < now) unended += now - since;
    samples += w.samples.load(std::memory_order_relaxed);
    all.worker_busy_seconds += seconds(w.busy_ns);
    all.waiting_for_room += seconds(w.room_ns);
    all.waiting_for_room_in_stall += seconds(w.room_in_stall_ns);
    all.waiting_for_input += seconds(w.input_ns);
    all.longest_sample_seconds = std::max(all.longest_sample_seconds, seconds(w.longest_ns));
  }
  all.waiting_for_room += static_cast<double>(unended) * 1e-9;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    stage_cost sum;
    for (const worker_counts& w : workers) {
      const stage_cost one = w.stage(i);
      sum.nanoseconds += one.nanoseconds;
      sum.timed += one.timed;
    }
    const double each =
        sum.timed == 0 ? 0 : static_cast<double>(sum.nanoseconds) / static_cast<double>(sum.timed);
    all.stages.push_back({stages[i], samples, each * static_cast<double>(samples) * 1e-9});
  }
}

PENSTOCK_INLINE void explain_wait(std::string& line, std::span<const worker_counts> workers,
                                  const char* otherwise) {
  bool any = false;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    const std::uint64_t index = workers[i].at_index.load(std::memory_order_relaxed);
    if (index == worker_counts::nothing) continue;
    const std::uint64_t count = workers[i].at_count.load(std::memory_order_relaxed);
    detail::append(line, {any ? "; worker " : "worker ", i, ", which evaluates "});
    if (count != 1) detail::append(line, {"one of ", count, " samples from "});
    detail::append(line, {"position ", index});
    any = true;
  }
  if (!any) line += otherwise;
}

}  // namespace penstock::inline v0_1
