// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/evaluation/detail/landing.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <type_traits>

/// What is the same in the workers of all chains.
namespace penstock::inline v0_1 {

/// The cost of one stage for one worker, from the samples that were timed: its own work, plus the time to
/// write whatever it left unfinished to its destination.
struct stage_cost {
  std::uint64_t nanoseconds = 0;
  std::uint64_t timed = 0;
};

/// Whether an evaluation is timed: a type, so that the untimed one costs nothing.
using untimed = std::false_type;

namespace detail {

/// The time of a steady clock.
[[nodiscard]] std::uint64_t now_ns() noexcept;

/// The root of every worker.
struct worker_root {
  static constexpr std::uint32_t no_stage = 0xffffffffu;
  std::uint32_t piece = 0;
  std::uint32_t failed = no_stage;  // the number of the stage whose function threw last; 0 is the source
  stage_cost cost;
  landing_time landing;
};
/// The worker of an innermost node: it has the root, and no worker below it.
template <class W>
concept innermost_worker = requires(std::remove_const_t<W>& w) {
  { w.root } -> std::same_as<worker_root&>;
};
/// Lives while the function of a stage runs: remembers its number if it throws. Costs nothing if it does not.
struct failure_mark {
  worker_root& root;
  std::uint32_t number;
  bool armed = true;
  ~failure_mark() {
    if (armed && root.failed == worker_root::no_stage) root.failed = number;
  }
};

/// The node of the source in a chain, or its worker in the chain's.
template <class T>
auto& innermost(T& all) noexcept {
  if constexpr (requires { all.up; })
    return innermost(all.up);
  else
    return all;
}

/// The root at the bottom of a worker.
template <class W>
worker_root& root_of(W& w) noexcept {
  return innermost(w).root;
}

}  // namespace detail

/// A timed evaluation, and its clock in nanoseconds.
struct timed : std::true_type {
  static std::uint64_t now() noexcept { return detail::now_ns(); }
};

inline std::uint64_t detail::now_ns() noexcept {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::steady_clock::now().time_since_epoch())
                                        .count());
}

}  // namespace penstock::inline v0_1
