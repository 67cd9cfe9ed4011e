// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/observe/concepts.hpp>
#include <penstock/observe/detail/event_ring.hpp>
#include <penstock/observe/detail/trace_text.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace penstock::inline v0_1::detail {

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

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/observe/detail/recorded_run.ipp>
#endif
