// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/observe/concepts.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>

namespace penstock::inline v0_1::detail {

/// The latest events of one thread. That thread adds events; any thread may copy them meanwhile. No lock,
/// and no allocation after construction.
///
/// An event that is overwritten during the copy is left out: each word is stored after the update of
/// `begun_`, with release, so a reader that sees the word also sees `begun_`.
class event_ring {
 public:
  explicit event_ring(std::size_t capacity);

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

[[nodiscard]] inline std::uint64_t trace_now() noexcept {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::steady_clock::now().time_since_epoch())
                                        .count());
}

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

/// Writes under a temporary name in the same folder, flushes and renames; leaves nothing behind on failure.
void write_whole_file(const std::string& path, std::string_view bytes);

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
