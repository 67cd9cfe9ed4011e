// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/observe/counters.hpp>
#include <penstock/observe/interference.hpp>

#include <initializer_list>
#include <string_view>
#include <utility>

namespace penstock::inline v0_1 {

/// The limiting factor of a training loop.
enum class bottleneck : std::uint8_t {
  unknown,   ///< not enough data yet
  consumer,  ///< the loop itself: data are always ready
  io,        ///< reading
  cpu,       ///< a stage that computes
  jitter,    ///< neither on average: samples take uneven times, and too few are kept ready for the slow ones
  copy,      ///< the copy to the device
  starved,   ///< processors: the threads of the step and the workers want more than there are
};

/// The name of a bottleneck, as `report` writes it.
[[nodiscard]] constexpr std::string_view to_string(bottleneck b) noexcept {
  constexpr std::string_view names[] = {
      "unknown",    "consumer-bound",       "I/O-bound", "CPU-bound", "jitter-bound",
      "copy-bound", "starved of processors"};
  return names[static_cast<std::size_t>(b)];
}

/// Why a loop is as fast as it is, and what to do about it.
struct verdict {
  bottleneck limit = bottleneck::unknown;
  double stall = 0;          ///< fraction of its time that the consumer waited
  double busy = 0;           ///< fraction of their time that workers evaluated
  std::string busiest;       ///< the stage that takes the most time
  double busiest_share = 0;  ///< its share of the time of all stages
  std::string advice;        ///< one sentence
};

namespace detail {

/// A number with three digits, in the largest of the (descending) units that leaves a digit before the
/// point.
std::string in_units(double value, std::initializer_list<std::pair<double, const char*>> units);

std::string percent(double share);
/// How much faster one rate is than another: "12.5% faster", and from a factor of two "2.4 times as fast".
std::string as_fast(double ratio);
std::string in_bytes(std::uint64_t bytes);
std::string in_seconds(double seconds);

}  // namespace detail

/// Judges a run by its counters, in the order in which a person would: does the consumer wait at all; if so,
/// are the workers busy, and with which stage; if they are idle, do they wait for input or for room.
///
/// `before`: earlier counters of the same run; only the work since then is judged. `outside`: what
/// `findings` has for that time; if the loop waits, the advice begins with the first of them and names its
/// file. Without workers, the consumer evaluates itself, and all of that work counts as waiting. Cost:
/// nothing to the run. Throws only `std::bad_alloc`.
///
///     const auto why = judge(run.counters());
///     if (why.limit == bottleneck::io) std::cerr << why.advice;
[[nodiscard]] verdict judge(const run_counters& counters, const run_counters& before = {},
                            const std::vector<finding>& outside = {});

/// The third step: run the same plan over a source that costs nothing (`synthetic`, `generated`) and pass
/// its counters too. If that is hardly faster, reading is not the bottleneck.
[[nodiscard]] verdict judge_against(const run_counters& real, const run_counters& without_reading);

/// Where a run keeps samples in memory, and why, in a sentence: what the chosen place saves and takes, and
/// what the others would.
[[nodiscard]] std::string why_kept(const kept_choice& choice);

/// The counters of a run in words: rates, the time of each stage, all that was found `outside`, and the
/// verdict.
[[nodiscard]] std::string report(const run_counters& counters, const run_counters& before = {},
                                 const std::vector<finding>& outside = {});

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/observe/verdict.ipp>
#endif
