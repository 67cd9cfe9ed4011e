// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/options.hpp>
#include <penstock/core/part.hpp>
#include <penstock/observe/concepts.hpp>
#include <penstock/observe/detail/event_ring.hpp>
#include <penstock/observe/detail/trace_text.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

namespace detail {

/// What is known of one run: a ring of events for each of its threads, and what is held of it.
template <class = void>
class basic_recorded_run {
 public:
  basic_recorded_run(const observed_run& what, std::uint64_t number, std::size_t events)
      : what_(what), number_(number), holds_(events) {
    const std::size_t threads = 1 + std::size_t{what.workers} + (what.asks_ahead ? 1 : 0);
    for (std::size_t i = 0; i < threads; ++i) threads_.push_back(std::make_unique<event_ring>(events));
    held_.reserve(1024);
  }

  void note(unsigned thread, const run_event& e) noexcept { threads_[thread]->add(e); }
  void hold(const void* key, const run_event& e) noexcept {
    const std::lock_guard guard(lock_);
    if (held_.size() == held_.capacity())
      ++holds_dropped_;
    else
      held_.push_back({key, e});
  }
  void let_go(const void* key) noexcept {
    const std::uint64_t now = trace_now();
    const std::lock_guard guard(lock_);
    const auto found =
        std::find_if(held_.begin(), held_.end(), [key](const held& h) { return h.key == key; });
    if (found == held_.end()) return;
    found->event.end_ns = now;
    holds_.add(found->event);
    *found = held_.back();
    held_.pop_back();
  }

  [[nodiscard]] std::uint64_t dropped() const {
    std::vector<run_event> unused;
    std::uint64_t sum = 0;
    for (const auto& thread : threads_) sum += thread->copy(unused);
    const std::lock_guard guard(lock_);
    return sum + holds_.copy(unused) + holds_dropped_;
  }
  /// Writes its threads and what they did; thread numbers begin at `tid`. Gives the next free one.
  std::uint64_t write(trace_text& out, std::uint64_t tid) const {
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      std::vector<run_event> events;
      const std::uint64_t lost = threads_[i]->copy(events);
      out.thread(tid + i, text({"run ", number_, ", ", role(i)}));
      if (lost != 0) out.lost(tid + i, events.empty() ? 0 : events.front().begin_ns, lost);
      for (const run_event& e : events)
        out.complete(tid + i, e, e.what == activity::stage ? what_.stages[e.stage] : to_string(e.what));
    }
    write_holds(out, tid);
    return tid + threads_.size();
  }
  [[nodiscard]] const observed_run& what() const noexcept { return what_; }

 private:
  struct held {
    const void* key;
    run_event event;
  };

  [[nodiscard]] std::string role(std::size_t thread) const {
    if (thread == 0) return "consumer";
    if (thread <= what_.workers) return text({"worker ", thread - 1});
    return "reads ahead";
  }
  void write_holds(trace_text& out, std::uint64_t tid) const {
    std::vector<run_event> events;
    std::uint64_t lost = 0;
    {
      const std::lock_guard guard(lock_);
      lost = holds_.copy(events) + holds_dropped_;
      for (const held& h : held_) {
        events.push_back(h.event);
        events.back().end_ns = trace_now();
      }
    }
    if (lost != 0) out.lost(tid, events.empty() ? 0 : events.front().begin_ns, lost);
    for (std::size_t i = 0; i < events.size(); ++i)
      out.held(tid, text({number_, '.', i}), events[i], to_string(events[i].what));
  }

  observed_run what_;
  std::uint64_t number_;
  std::vector<std::unique_ptr<event_ring>> threads_;
  mutable std::mutex lock_;  // of what follows
  event_ring holds_;
  std::vector<held> held_;
  std::uint64_t holds_dropped_ = 0;
};
using recorded_run = basic_recorded_run<>;

}  // namespace detail

/// Records what each thread of a run did when, for `ui.perfetto.dev` and `chrome://tracing`.
///
/// An annotation: `loader | trace`. Per worker: grains that it evaluated, with their batch and range of
/// positions, within them the source and each stage for the first sample, and its waits for room and for a
/// forward source. Of the consumer: its waits, copies to a device, and from when to when a batch was held.
/// Copies of a `timeline` share what is recorded, and a run without one looks at an empty list once a block.
/// Cost: some 100 ns for an event, a clock per stage for one sample in a grain; 72 bytes an event, kept in a
/// ring per thread, so that the latest are there; those dropped are counted. Recorded runs outlive their
/// runs; the latest `runs` are kept. Threads: any may write while runs work.
/// The format is the JSON of the Trace Event Format (Chromium); times are those of the steady clock, so that
/// the files of several ranks on one machine fit together.
///
///     timeline trace;
///     auto run = (loader | trace).open();
///     for (auto&& b : run.epoch(0)) train(b);
///     trace.write("trace.json");
template <class = void>
class basic_timeline {
 public:
  using penstock_part = annotation_tag;
  static constexpr std::string_view stage_name = "timeline";

  struct options {
    std::size_t events_per_thread = 8192;
    std::size_t runs = 8;
  };

  basic_timeline() : basic_timeline(options{}) {}
  explicit basic_timeline(options given) : shared_(new recorder(given)) {}

  /// What a run writes to.
  class session {
   public:
    explicit session(std::shared_ptr<detail::recorded_run> into) : into_(std::move(into)) {}
    void note(unsigned thread, const run_event& e) noexcept { into_->note(thread, e); }
    void hold(const void* key, const run_event& e) noexcept { into_->hold(key, e); }
    void let_go(const void* key) noexcept { into_->let_go(key); }

   private:
    std::shared_ptr<detail::recorded_run> into_;
  };

  /// A run begins to write. Called by `open`.
  [[nodiscard]] session connect(const observed_run& what) const {
    recorder& all = *shared_;
    const std::lock_guard guard(all.lock);
    std::shared_ptr<detail::recorded_run> made(
        new detail::recorded_run(what, all.opened + 1, all.given.events_per_thread));
    all.runs.push_back(made);
    ++all.opened;
    while (all.runs.size() > std::max<std::size_t>(1, all.given.runs)) all.runs.erase(all.runs.begin());
    return session(std::move(made));
  }
  void apply(run_options& /*unused*/, bool /*after_batch*/) const noexcept {}

  /// How many events there was no room for, in the runs that are kept.
  [[nodiscard]] std::uint64_t dropped() const {
    std::uint64_t sum = 0;
    for (const auto& one : kept()) sum += one->dropped();
    return sum;
  }
  /// The whole trace as JSON.
  [[nodiscard]] std::string json() const {
    detail::trace_text out;
    std::uint64_t tid = 1;
    bool named = false;
    for (const auto& one : kept()) {
      const observed_run& what = one->what();
      if (!named)
        out.process(detail::text({"penstock, rank ", what.rank, " of ", what.world, ": ", what.source}));
      named = true;
      tid = one->write(out, tid);
    }
    return out.finish(dropped());
  }
  /// Writes it to a file, which appears whole or not at all. Throws `errc::io` with the file's name.
  void write(const std::string& path) const { detail::write_whole_file(path, json()); }

 private:
  struct recorder {
    explicit recorder(options o) : given(o) {}
    options given;
    std::mutex lock;  // of what follows
    std::vector<std::shared_ptr<detail::recorded_run>> runs;
    std::uint64_t opened = 0;
  };

  [[nodiscard]] std::vector<std::shared_ptr<detail::recorded_run>> kept() const {
    const std::lock_guard guard(shared_->lock);
    return shared_->runs;
  }

  std::shared_ptr<recorder> shared_;
};
/// The form to use: see `basic_timeline`.
using timeline = basic_timeline<>;

}  // namespace penstock::inline v0_1
