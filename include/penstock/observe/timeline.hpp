// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/options.hpp>
#include <penstock/core/part.hpp>
#include <penstock/observe/concepts.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

namespace detail {
class recorded_run;
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

  /// What a run writes to.
  class session {
   public:
    explicit session(std::shared_ptr<detail::recorded_run> into) : into_(std::move(into)) {}
    void note(unsigned thread, const run_event& e) noexcept;
    void hold(const void* key, const run_event& e) noexcept;
    void let_go(const void* key) noexcept;

   private:
    std::shared_ptr<detail::recorded_run> into_;
  };

  /// A run begins to write. Called by `open`.
  [[nodiscard]] session connect(const observed_run& what) const;
  void apply(run_options& /*unused*/, bool /*after_batch*/) const noexcept {}

  /// How many events there was no room for, in the runs that are kept.
  [[nodiscard]] std::uint64_t dropped() const;
  /// The whole trace as JSON.
  [[nodiscard]] std::string json() const;
  /// Writes it to a file, which appears whole or not at all. Throws `errc::io` with the file's name.
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
