// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/random.hpp>
#include <penstock/core/to_size.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace penstock::inline v0_1 {

/// Which of `held` elements of a shuffle buffer comes out at place `ordinal` of epoch `epoch`. A pure
/// function, so that a buffer of positions and a buffer of samples produce the same sequence.
[[nodiscard]] constexpr std::uint64_t buffer_draw(std::uint64_t seed, std::uint64_t epoch,
                                                  std::uint64_t ordinal, std::uint64_t held) noexcept {
  const std::uint64_t word = mix64(ordinal ^ mix64(epoch ^ mix64(seed)));
  // The high half of a 32 x 64 bit product: a number below `held` (buffers have fewer than 2^32 elements).
  return ((word >> 32) * held) >> 32;
}

/// The cursor of `shuffle_buffer` over positions: holds ordinals, draws one, puts the next one in its place.
///
/// A value type: a run has up to three, including a leading one for the batches it opens and a trailing one
/// that is the state. Memory: 8 bytes per element.
class position_buffer {
 public:
  position_buffer() = default;
  position_buffer(std::uint64_t capacity, std::uint64_t seed) : capacity_(capacity), seed_(seed) {}

  /// Starts an epoch of `size` ordinals.
  void begin(std::uint64_t epoch, std::uint64_t size);

  /// Resumes from a state: the ordinals held, and how many have gone in and come out.
  void restore(std::uint64_t epoch, std::uint64_t size, std::uint64_t taken, std::uint64_t given,
               std::vector<std::uint64_t> held);

  /// Whether a state could be the result of `size` ordinals and `given` draws.
  [[nodiscard]] bool could_hold(std::uint64_t size, std::uint64_t taken, std::uint64_t given,
                                std::vector<std::uint64_t> held) const;

  [[nodiscard]] bool empty() const noexcept { return held_.empty(); }

  /// The next ordinal; there must be one.
  std::uint64_t next() {
    const auto drawn = detail::to_size(buffer_draw(seed_, epoch_, given_++, held_.size()));
    const std::uint64_t out = held_[drawn];
    if (taken_ < size_) {
      held_[drawn] = taken_++;
    } else {
      held_[drawn] = held_.back();
      held_.pop_back();
    }
    return out;
  }

  [[nodiscard]] std::uint64_t taken() const noexcept { return taken_; }
  [[nodiscard]] std::uint64_t given() const noexcept { return given_; }
  [[nodiscard]] std::span<const std::uint64_t> held() const noexcept;
  [[nodiscard]] std::uint64_t capacity() const noexcept { return capacity_; }

 private:
  std::uint64_t capacity_ = 1, seed_ = 0, epoch_ = 0, size_ = 0, taken_ = 0, given_ = 0;
  std::vector<std::uint64_t> held_;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/run/feed/position_buffer.ipp>
#endif
