// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/engine/tuning/tuning.hpp>

#include <algorithm>

namespace penstock::inline v0_1 {

/// How much work a block holds, if a sample may take any time, whatever its bytes: one batch while the cost
/// of samples is unknown, then at most 50 ms, and at most four times as many batches as before. A grain of it
/// is at most 1 ms, as far as the ring's number of grains allows.
///
/// Where samples are only copied, their bytes say how long they take, and blocks are as large as they say.
/// Threads: the consumer's. Cost: a division per block.
class block_budget {
 public:
  /// Blocks of up to `maximum` batches. `measured`: samples may take any time.
  block_budget(std::size_t maximum, bool measured) noexcept
      : maximum_(maximum), batches_(measured ? 1 : maximum), measured_(measured) {}

  /// Batches that the next block may hold.
  [[nodiscard]] std::size_t batches() const noexcept { return batches_; }
  /// Slots that a worker takes at a time from a block of `slots` and at most `grains`; `usual` if its bytes
  /// decide.
  [[nodiscard]] std::uint64_t grain(std::uint64_t slots, std::uint64_t grains,
                                    std::uint64_t usual) const noexcept {
    const std::uint64_t least = std::max<std::uint64_t>(1, (slots + grains - 1) / grains);
    if (!measured_) return std::max(usual, least);
    return std::max(least, std::min(usual, each_ == 0 ? 1 : grain_ns * scale / each_));
  }
  /// Whether a block takes so long that its consumer should sleep until it is there.
  [[nodiscard]] bool is_slow() const noexcept { return last_ns_ > grain_ns; }

  /// A block of so many slots and batches took the workers `ns` in all.
  void took(std::uint64_t ns, std::uint64_t slots, std::size_t batches) noexcept {
    if (!measured_ || slots == 0 || batches == 0) return;
    last_ns_ = ns;
    const std::uint64_t each = std::max<std::uint64_t>(1, std::min(ns, longest) * scale / slots);
    each_ = each > each_ ? each : each_ - (each_ - each) / 8;
    const std::uint64_t batch = std::max<std::uint64_t>(1, each_ * (slots / batches) / scale);
    const auto fit = static_cast<std::size_t>(std::clamp<std::uint64_t>(block_ns / batch, 1, maximum_));
    batches_ = std::min(fit, batches >= batches_ ? 4 * batches_ : batches_);
  }

 private:
  static constexpr std::uint64_t block_ns = tuning::block_time, grain_ns = tuning::grain_time, scale = 1024;
  static constexpr std::uint64_t longest = std::uint64_t{1} << 52;  // so that nothing overflows

  std::size_t maximum_, batches_;
  bool measured_;
  std::uint64_t each_ = 0;  // 1024ths of a nanosecond that a sample takes; 0 while unknown
  std::uint64_t last_ns_ = 0;
};

}  // namespace penstock::inline v0_1
