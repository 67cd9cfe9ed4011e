// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/engine/tuning/live_limits.hpp>

#include <cstddef>
#include <cstdint>

namespace penstock::inline v0_1 {

/// A thread's work as a ring calls it: `evaluate` for each grain that it takes, `finish` once per block,
/// `waiting(true)` and `waiting(false)` around a wait for room, and `rest` when it holds no ticket. None of
/// them throws.
struct ring_work {
  const live_limits* limits;
  std::size_t number;  ///< of the thread

  void (*on_grain)(ring_work&, std::uint64_t s, std::uint64_t grain) noexcept;
  void (*on_block)(ring_work&, std::uint64_t s) noexcept;
  void (*on_wait)(ring_work&, bool begins) noexcept;

  void evaluate(std::uint64_t s, std::uint64_t grain) noexcept { on_grain(*this, s, grain); }
  void finish(std::uint64_t s) noexcept { on_block(*this, s); }
  void waiting(bool begins) noexcept { on_wait(*this, begins); }
  void rest() noexcept {
    if (!limits->may_work(number)) [[unlikely]]
      limits->rest(number);
  }
};

}  // namespace penstock::inline v0_1
