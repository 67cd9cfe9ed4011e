// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/message.hpp>
#include <penstock/core/options.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/observe/concepts.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <utility>

namespace penstock::inline v0_1 {

namespace detail {

/// The latest events of one thread. That thread adds events; any thread may copy them meanwhile. No lock,
/// and no allocation after construction.
///
/// An event that is overwritten during the copy is left out: each word is stored after the update of
/// `begun_`, with release, so a reader that sees the word also sees `begun_`.
class event_ring {
 public:
  explicit event_ring(std::size_t capacity)
      : capacity_(capacity == 0 ? 1 : capacity), slots_(std::make_unique<slot[]>(capacity_)) {}

  void add(const run_event& e) noexcept;

  /// Appends the events, oldest first; returns how many earlier ones were dropped.
  std::uint64_t copy(std::vector<run_event>& all) const;

 private:
  using words = std::array<std::uint64_t, 9>;
  using slot = std::array<std::atomic<std::uint64_t>, 9>;

  std::size_t capacity_;
  std::unique_ptr<slot[]> slots_;
  alignas(64) std::atomic<std::uint64_t> begun_{0};
  std::atomic<std::uint64_t> done_{0};
};

[[nodiscard]] std::uint64_t trace_now() noexcept;

/// Collects events. `ph` is X for intervals, M for names, b and e for overlapping intervals, i for instants,
/// C for counts;
/// times are microseconds with three decimals.
class trace_text {
 public:
  trace_text();

  void process(std::string_view name);
  void thread(std::uint64_t tid, std::string_view name);
  void complete(std::uint64_t tid, const run_event& e, std::string_view name);
  /// A track for each count: "storage requests" and so on, "cache hits" and so on.
  void counted(const run_event& e);
  void held(std::uint64_t tid, std::string_view id, const run_event& e, std::string_view name);
  void lost(std::uint64_t tid, std::uint64_t when_ns, std::uint64_t count);
  [[nodiscard]] std::string finish(std::uint64_t dropped);

 private:
  static std::string_view category(activity a) noexcept;
  void begin(std::string_view name, std::string_view phase, std::uint64_t tid);
  void microseconds(std::uint64_t ns);
  void arguments(const run_event& e);

  std::uint64_t pid_;
  std::string text_;
};

/// The record of one run: a ring of events for each of its threads, and what it holds.
class recorded_run {
 public:
  recorded_run(const observed_run& what, std::uint64_t number, std::size_t events);

  void note(unsigned thread, const run_event& e) noexcept { threads_[thread]->add(e); }
  void hold(const void* key, const run_event& e) noexcept;
  void let_go(const void* key) noexcept;

  [[nodiscard]] std::uint64_t dropped() const;
  /// Writes the run's threads and their events; thread numbers start at `tid`. Returns the next free
  /// number.
  std::uint64_t write(trace_text& out, std::uint64_t tid) const;
  [[nodiscard]] const observed_run& what() const noexcept { return what_; }

 private:
  struct held {
    const void* key;
    run_event event;
  };

  [[nodiscard]] std::string role(std::size_t thread) const;
  void write_holds(trace_text& out, std::uint64_t tid) const;

  observed_run what_;
  std::uint64_t number_;
  std::vector<std::unique_ptr<event_ring>> threads_;
  mutable std::mutex lock_;  // guards everything below
  event_ring holds_;
  std::vector<held> held_;
  std::uint64_t holds_dropped_ = 0;
};

}  // namespace detail

/// Records what each thread of a run did when, for `ui.perfetto.dev` and `chrome://tracing`.
///
/// An annotation: `loader | trace`. For each worker it records the grains that it evaluated, with their
/// batch and range of positions; within them, the source and each stage for the first sample; and its waits
/// for room and for a forward source. For the consumer: its waits, copies to a device, and the time it held
/// each batch. Of a storage that counts: its requests, and counts of retries, second reads and the like as
/// tracks over time; of its caches also the hits, and the blocks that were fetched and that went. Copies of a
/// `timeline` share the recording; a run without one checks an empty list once per block.
/// Cost: about 100 ns per event, and a clock read per stage for one sample in a grain. Memory: 72 bytes per
/// event, in a ring per thread that keeps the latest ones; dropped events are counted. Recordings outlive
/// their runs; the latest `runs` are kept. Threads: any thread may call `write` while runs work.
/// The format is the JSON of the Trace Event Format (Chromium); times are those of the steady clock, so that
/// files from several ranks on one machine fit together.
///
///     timeline trace;
///     auto run = (loader | trace).open();
///     for (auto&& b : run.epoch(0)) train(b);
///     trace.write("trace.json");
class timeline {
 public:
  using penstock_part = annotation_tag;
  static constexpr std::string_view stage_name = "timeline";

  struct options {
    std::size_t events_per_thread = 8192;
    std::size_t runs = 8;
  };

  timeline() : timeline(options{}) {}
  explicit timeline(options given) : shared_(new recorder(given)) {}

  /// The session to which a run writes.
  class session {
   public:
    explicit session(std::shared_ptr<detail::recorded_run> into) : into_(std::move(into)) {}
    void note(unsigned thread, const run_event& e) noexcept { into_->note(thread, e); }
    void hold(const void* key, const run_event& e) noexcept { into_->hold(key, e); }
    void let_go(const void* key) noexcept { into_->let_go(key); }

   private:
    std::shared_ptr<detail::recorded_run> into_;
  };

  /// Starts recording a run. `open` calls it.
  [[nodiscard]] session connect(const observed_run& what) const;
  void apply(run_options& /*unused*/, bool /*after_batch*/) const noexcept {}

  /// How many events of the kept runs were dropped for lack of room.
  [[nodiscard]] std::uint64_t dropped() const;
  /// The whole trace as JSON.
  [[nodiscard]] std::string json() const;
  /// Writes the trace to a file, which appears complete or not at all. Throws `errc::io` with the file's
  /// name.
  void write(const std::string& path) const;

 private:
  struct recorder {
    explicit recorder(options o) : given(o) {}
    options given;
    std::mutex lock;  // guards everything below
    std::vector<std::shared_ptr<detail::recorded_run>> runs;
    std::uint64_t opened = 0;
  };

  [[nodiscard]] std::vector<std::shared_ptr<detail::recorded_run>> kept() const;

  std::shared_ptr<recorder> shared_;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/observe/timeline.ipp>
#endif
