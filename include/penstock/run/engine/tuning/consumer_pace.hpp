// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#include <algorithm>
#include <cstdint>

namespace penstock::inline v0_1 {

/// Whether a consumer that shares a processor with its workers does better to evaluate grains itself while it
/// waits.
///
/// A loop that comes back at once for blocks that are soon made takes a processor from a worker each time it
/// is woken, and the waking costs as much as the block. A loop that is busy for longer leaves the processors
/// to its workers in between; of a block that takes longer, waking is a small part. So both must be short,
/// and must have been for some time.
/// Threads: the consumer's.
class consumer_pace {
 public:
  /// `grains`: of a block.
  explicit consumer_pace(std::uint64_t grains) noexcept : of_block_(grains) {}

  /// The consumer must wait again after it was `away` so long, in nanoseconds; of all grains so far `grains`
  /// are known to have taken `busy`.
  void waits(std::uint64_t away, std::uint64_t grains, std::uint64_t busy) noexcept {
    if (grains != grains_) block_ = (busy - busy_) / (grains - grains_) * of_block_;
    grains_ = grains;
    busy_ = busy;
    const bool quick = away < short_away && block_ < short_block;
    quick_ = quick ? std::min(quick_ + 1, enough) : 0;
  }
  [[nodiscard]] bool is_quick() const noexcept { return quick_ == enough; }

 private:
  static constexpr std::uint64_t short_away = 100'000, short_block = 200'000;
  static constexpr std::uint32_t enough = 64;

  std::uint64_t of_block_;
  std::uint64_t grains_ = 0, busy_ = 0, block_ = 0;  // block_: how long the work on one takes, by the latest
  std::uint32_t quick_ = 0;                          // waits in a row after which both were short
};

}  // namespace penstock::inline v0_1
