// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/position.hpp>
#include <penstock/core/random.hpp>

#include <cstdint>

namespace penstock::inline v0_1 {

/// What a stage gets in addition to the value: the sample's position, the worker's scratch for this stage,
/// and random numbers that belong to this sample and this stage only.
template <class Scratch>
struct call {
  position at;
  std::uint32_t piece = 0;   ///< which piece of the sample, after `unbatch`
  std::uint64_t seed = 0;    ///< the pipeline's seed
  std::uint64_t stream = 0;  ///< the stage's number among the random stages, or the hash of its key
  Scratch& scratch;

  /// Random numbers keyed by seed, position, piece and stage: identical for any number of threads or ranks
  /// and after a restore.
  [[nodiscard]] constexpr rng random() const noexcept {
    return {seed, at.epoch, at.index, piece == 0 ? stream : mix64(stream ^ mix64(piece))};
  }
};

}  // namespace penstock::inline v0_1
