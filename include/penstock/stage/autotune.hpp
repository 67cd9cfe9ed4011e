// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/options.hpp>
#include <penstock/core/pipe.hpp>
#include <penstock/stage/workers.hpp>

#include <chrono>

namespace penstock::inline v0_1 {

/// The caps of `autotune`, and how long it may take.
struct autotune_options {
  /// the most worker threads; unset: the processors that this process may use, shared among the node's ranks
  std::optional<unsigned> processors{};
  /// the most bytes of batches and of what is read ahead, as with `memory(bytes)`; unset: no bound but that
  /// of `memory(bytes)`, and deeper than the default only up to 1 GiB
  std::optional<std::uint64_t> memory{};
  /// trials end after so long, and begin again when the work changes
  std::chrono::milliseconds within{10'000};
};

/// Tunes a run while it works: the number of workers, batches in flight, samples read ahead, and requests in
/// flight. An annotation: its place does not matter, and neither the sequence nor states depend on it.
///
///     auto loader = from({1, 2, 3, 4}) | batch(2) | autotune({.processors = 4, .memory = 2_GiB});
///
/// The run begins with the defaults. A model of what the stages and the loop's step were measured to take
/// says what may be faster; a trial of equal batches decides, and only what is 3 % faster is kept. What was
/// found is compared with the defaults once more, and given up if it is no faster. After `within` no more is
/// tried, until the time of a step or of a sample changes by a quarter. `run.counters().autotune` has what
/// was found as an expression to copy, and `report` prints it.
///
/// What you fix stays fixed: `workers(n)`, `prefetch(n)` before or after `batch`, `.max_in_flight` of its
/// options, and each limit that you give to `run.adjust`. Read-ahead is tuned where a storage has latency,
/// and requests where it has, besides, no limit of its own for them. Workers that wait instead of computing
/// (slow disks, functions that sleep) need `.processors` above the number of processors; `workers(0)` is
/// never tried, and in a run with it nothing is tuned.
///
/// The run is opened with the caps as its highest limits: a worker beyond the present limit is a parked
/// thread. Cost: a comparison for each block of batches, and reading counters each 200th of `within`; it has
/// no thread of its own. Trials may be slower while they last. Ranks tune for themselves. `.processors` of 0
/// or above 2^16, and a `within` below 100 ms or above a day, are `errc::argument`.
/// Source: hill climbing on throughput by paired trials, which a queueing bound (workers times their cost, or
/// the step, whichever is longer) begins near the goal.
struct autotune_stage {
  using penstock_part = annotation_tag;
  static constexpr std::string_view stage_name = "autotune";
  autotune_options value{};

  void apply(run_options& options, bool /*after_batch*/) const {
    options.autotune = {value.processors, value.memory, static_cast<std::uint64_t>(value.within.count())};
  }
  [[nodiscard]] std::string describe() const {
    std::string line = "autotune(";
    if (value.processors) detail::append(line, {*value.processors, " processors, "});
    if (value.memory) detail::append(line, {*value.memory, " bytes, "});
    detail::append(line, {"within ", value.within.count(), " ms)"});
    return line;
  }
};

namespace detail {

[[noreturn, gnu::cold]] inline void refuse_autotune(std::initializer_list<piece> what) {
  throw error(errc::argument, what).in_stage("autotune");
}

}  // namespace detail

[[nodiscard]] constexpr autotune_stage autotune(const autotune_options& caps = {}) {
  if (caps.processors && (*caps.processors == 0 || *caps.processors > workers_stage::max_workers))
    detail::refuse_autotune({"autotune({.processors = ", *caps.processors,
                             "}): the most threads that work; give it 1 to ",
                             std::uint64_t{workers_stage::max_workers}});
  if (caps.within < std::chrono::milliseconds(100) || caps.within > std::chrono::hours(24))
    detail::refuse_autotune({"autotune({.within = ", caps.within.count(),
                             " ms}): trials need 100 ms at least, and are done within a day; write 10s"});
  return {caps};
}

}  // namespace penstock::inline v0_1
