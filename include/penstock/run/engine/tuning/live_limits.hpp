// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/options.hpp>

#include <atomic>
#include <mutex>

namespace penstock::inline v0_1 {

/// The limits of a run that can change while it works, up to the values it was opened with.
///
/// A worker beyond the limit rests between two grains, when it holds no ticket, so the others never have to
/// wait for it. A single word holds the number of active workers and whether all are stopped, so a wait
/// misses neither. Threads: any may adjust; each worker checks before every grain, at the cost of one relaxed
/// load.
class live_limits {
 public:
  /// The limits at opening: threads, blocks of so many batches, and samples to request ahead. Starts counting
  /// time.
  live_limits(unsigned workers, std::size_t blocks, std::size_t batches_per_block,
              std::uint64_t ahead) noexcept;

  /// Sets the given limits. If any is out of range, throws errc::argument and changes none.
  void adjust(const run_limits& wanted);
  /// The current limits; without threads there is neither `workers` nor `depth`.
  [[nodiscard]] run_limits now() const noexcept;
  /// Before the run is used: something is fetched ahead, with at most so many requests in flight; 0: as many
  /// as the storage lets through.
  void fetches(std::size_t requests) noexcept {
    max_requests_ = requests == 0 ? max_in_flight : requests;
    requests_.store(requests, std::memory_order_relaxed);
  }

  [[nodiscard]] unsigned workers() const noexcept { return word_.load(std::memory_order_relaxed) & ~stopped; }
  [[nodiscard]] std::size_t blocks() const noexcept { return blocks_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t ahead() const noexcept { return ahead_.load(std::memory_order_relaxed); }
  /// Requests in flight; 0: as many as the storage lets through.
  [[nodiscard]] std::size_t requests() const noexcept { return requests_.load(std::memory_order_relaxed); }

  /// The time of all workers together, not counting rests.
  [[nodiscard]] std::uint64_t worker_ns(std::uint64_t now) const;

  [[nodiscard]] bool may_work(std::size_t number) const noexcept {
    return number < word_.load(std::memory_order_relaxed);
  }
  /// Waits until worker `number` may work, or all are stopped.
  void rest(std::size_t number) const noexcept;
  /// Ends all waiting, now and later.
  void stop() noexcept;

 private:
  static constexpr std::uint32_t stopped = std::uint32_t{1} << 31;
  static constexpr std::size_t max_in_flight = 4096;

  const std::uint32_t max_workers_;
  const std::size_t max_blocks_, batches_per_block_;
  const std::uint64_t max_ahead_;
  std::size_t max_requests_ = 0;     // 0: nothing is fetched
  std::atomic<std::uint32_t> word_;  // how many may work; the top bit is set once they are stopped
  std::atomic<std::size_t> blocks_;
  std::atomic<std::uint64_t> ahead_;
  std::atomic<std::size_t> requests_{0};
  mutable std::mutex lock_;                // one thread adjusts at a time; also guards the next two
  std::uint64_t changed_, worker_ns_ = 0;  // when `workers` last changed, and the time counted until then
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/run/engine/tuning/live_limits.ipp>
#endif
