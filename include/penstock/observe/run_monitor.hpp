// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/observe/counters.hpp>

#include <atomic>
#include <mutex>

namespace penstock::inline v0_1 {

namespace detail {

/// Someone who wants to see a batch: `look` is called once, in the consumer's thread, with the run's next
/// batch, whose type both know.
struct batch_viewer {
  void* self = nullptr;
  void (*look)(void* self, const void* batch) noexcept = nullptr;
};

/// What a run and its monitors share.
class monitored_run {
 public:
  monitored_run(const void* run, run_counters (*ask)(const void* run)) : run_(run), ask_(ask) {}

  /// The run's counters, or the last ones of a run that has been destroyed.
  [[nodiscard]] run_counters counters() const;
  [[nodiscard]] bool ended() const;
  /// Consumer: the run is about to be destroyed. Waits for a thread that is reading its counters.
  void end() noexcept;

  /// The next batch is shown to `who`, unless another one is delivered to him first; replaces who waits now.
  void show_next(batch_viewer who);
  /// Afterwards nobody is called any more, and no call is in progress.
  void show_none();
  /// Consumer: whether somebody waits for a batch; and shows it to him.
  [[nodiscard]] bool wants_batch() const noexcept { return wanted_.load(std::memory_order_relaxed); }
  void show(const void* batch) noexcept;

 private:
  mutable std::mutex lock_, show_lock_;
  const void* run_;
  run_counters (*ask_)(const void*);
  run_counters last_;
  std::atomic<bool> wanted_{false};
  batch_viewer viewer_;
};

}  // namespace detail

/// What `run.monitor()` returns: the counters of a run for other threads. A copy shows the same run, also
/// after the run was moved. Once the run is destroyed, it shows its last counters.
///
/// Threads: any, at any time; the run never waits for a monitor, but for its destructor, which waits while
/// counters are copied. Cost: nothing to the workers and the consumer; a copy of the counters takes some
/// microseconds.
///
///     auto watched = run.monitor();
///     std::jthread reporter([watched](std::stop_token end) {
///       for (; !end.stop_requested(); std::this_thread::sleep_for(std::chrono::seconds(10)))
///         std::cerr << report(watched.counters());
///     });
class run_monitor {
 public:
  explicit run_monitor(shared<detail::monitored_run> what) noexcept : what_(std::move(what)) {}

  [[nodiscard]] run_counters counters() const { return what_->counters(); }
  /// Whether the run has been destroyed.
  [[nodiscard]] bool ended() const { return what_->ended(); }

  /// For integrations that know the type of the run's batches; see `detail::monitored_run`.
  [[nodiscard]] detail::monitored_run& shared_with_run() const noexcept { return *what_; }

 private:
  shared<detail::monitored_run> what_;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/observe/run_monitor.ipp>
#endif
