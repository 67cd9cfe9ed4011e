// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/cpp20.hpp>

#include <vector>

namespace penstock::inline v0_1::detail {

/// A number of each of several frames.
using of_frames [[gnu::vector_size(16)]] = float;
/// How many frames.
inline constexpr std::size_t frames_at_once = 4;

/// The powers of the frequencies of four frames of real numbers at a time, one in each part of a vector, so
/// that every operation of the transform works on all of them and nothing is put in order. Threads share one.
///
/// A transform of an even length is one of half as many complex numbers, whose parts are neighbours. Two
/// frames could also be the parts of one number, but then rounding of a loud one would be heard in a silent
/// one beside it.
/// Source: Stockham, "High-speed convolution and correlation", 1966, for radix 2, 3, 4 and 5, and any other
/// prime by its definition.
class power_spectrum {
 public:
  explicit power_spectrum(std::uint32_t length);

  /// The number of frequencies.
  [[nodiscard]] std::uint32_t frequencies() const noexcept { return length_ / 2 + 1; }
  /// The numbers of a frame in memory, of which sample i has the number i * `step()` and the others are 0.
  [[nodiscard]] std::uint32_t size() const noexcept { return 2 * points_; }
  [[nodiscard]] std::uint32_t step() const noexcept { return length_ % 2 == 0 ? 1 : 2; }

  /// Writes the powers to `into`, for each frequency those of all frames. `frames` and `memory` have `size()`
  /// each; both are overwritten.
  void operator()(of_frames* frames, of_frames* memory, of_frames* into) const noexcept;

 private:
  /// Splits transforms of `radix` * `rest` points, of which there are `count`, into `radix` * `count`.
  struct pass {
    std::uint32_t radix, rest, count;
    std::size_t turns;  ///< where its factors are
  };

  std::uint32_t length_, points_;
  std::vector<pass> passes_;
  std::vector<float> turns_;  ///< cosines and sines
  std::size_t last_turns_ = 0;
};

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/audio/detail/power_spectrum.ipp>
#endif
