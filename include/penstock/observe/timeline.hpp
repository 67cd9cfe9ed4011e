// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/options.hpp>
#include <penstock/observe/concepts.hpp>

#include <memory>
#include <utility>

namespace penstock::inline v0_1 {

namespace detail {
class recorded_run;
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
  explicit timeline(options given);

  /// The session to which a run writes.
  class session {
   public:
    explicit session(std::shared_ptr<detail::recorded_run> into) : into_(std::move(into)) {}
    void note(unsigned thread, const run_event& e) noexcept;
    void hold(const void* key, const run_event& e) noexcept;
    void let_go(const void* key) noexcept;

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
  struct recorder;

  [[nodiscard]] std::vector<std::shared_ptr<detail::recorded_run>> kept() const;

  std::shared_ptr<recorder> shared_;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/observe/timeline.ipp>
#endif
