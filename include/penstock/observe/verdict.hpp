// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/observe/counters.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::inline v0_1 {

/// What holds a training loop back.
enum class bottleneck : std::uint8_t {
  unknown,   ///< too little was seen
  consumer,  ///< the loop itself: data are always there
  io,        ///< reading
  cpu,       ///< a stage that computes
  jitter,    ///< neither on average: samples take unequal times, and nothing is kept for the slow ones
};

/// The name of a bottleneck, as `report` writes it.
[[nodiscard]] constexpr std::string_view to_string(bottleneck b) noexcept {
  constexpr std::string_view names[] = {"unknown", "consumer-bound", "I/O-bound", "CPU-bound",
                                        "jitter-bound"};
  return names[static_cast<std::size_t>(b)];
}

/// Why a loop is as fast as it is, and what follows.
struct verdict {
  bottleneck limit = bottleneck::unknown;
  double stall = 0;          ///< share of its time that the consumer waited
  double busy = 0;           ///< share of their time that workers evaluated
  std::string busiest;       ///< the stage that takes most of it
  double busiest_share = 0;  ///< of the time of all stages
  std::string advice;        ///< one sentence
};

/// Judges a run by its counters, in the order in which a person would: does the consumer wait at all; if so,
/// are the workers busy, and with which stage; if they are not while it waits, is it for input or for room.
///
/// `before`: counters taken earlier in the same run; what came since then is judged. Without workers the
/// consumer evaluates itself, and its waiting is all of the work. Cost: nothing to the run. Throws
/// `std::bad_alloc` only.
///
///     const auto why = judge(run.counters());
///     if (why.limit == bottleneck::io) std::cerr << why.advice;
[[nodiscard]] verdict judge(const run_counters& counters, const run_counters& before = {});

/// The third step: the same plan over a source that costs nothing (`synthetic`, `generated`) is run as well,
/// and its counters are given. Where it is hardly faster, reading is not what holds the loop back.
[[nodiscard]] verdict judge_against(const run_counters& real, const run_counters& without_reading);

/// The counters of a run in words: rates, what each stage took, and the verdict.
[[nodiscard]] std::string report(const run_counters& counters, const run_counters& before = {});

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/observe/verdict.ipp>
#endif
