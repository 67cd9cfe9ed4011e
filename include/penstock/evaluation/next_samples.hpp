// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/position.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace penstock::inline v0_1 {

/// A sample's position in the order of its run, by which random numbers and errors go, and in its source.
struct sample_position {
  position at, source;
};

/// The samples that a worker evaluates next, up to 64: their positions are computed together, so that
/// permutations overlap with each other and not with the reading of samples.
class next_samples {
 public:
  static constexpr std::size_t maximum = 64;

  /// Computes those of n samples, the first of which is number `first`; n is cut to `maximum`. `index_of`
  /// gives their indices in the epoch, and `source_of(index, number)` their positions in the source. Returns
  /// how many there are: one for which that throws is asked for again when it is the first.
  template <class IndexOf, class SourceOf>
  std::size_t find(std::uint64_t epoch, std::uint64_t first, std::uint64_t n, IndexOf index_of,
                   SourceOf source_of) {
    epoch_ = epoch;
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(n, maximum));
    for (std::size_t i = 0; i < count; ++i) indices_[i] = index_of(first + i);
    std::size_t found = 0;
    try {
      for (; found < count; ++found) sources_[found] = source_of(indices_[found], first + found);
    } catch (...) {
      if (found == 0) throw;
    }
    return found;
  }
  [[nodiscard]] std::uint64_t index(std::size_t i) const noexcept { return indices_[i]; }
  [[nodiscard]] sample_position operator[](std::size_t i) const noexcept {
    return {{epoch_, indices_[i]}, sources_[i]};
  }
  /// The first n in the source.
  [[nodiscard]] std::span<const position> sources(std::size_t n) const noexcept {
    return {sources_.data(), n};
  }
  /// Whether the first n lie one behind the other in the source.
  [[nodiscard]] bool in_sequence(std::size_t n) const noexcept {
    std::uint64_t apart = 0;
    for (std::size_t i = 0; i < n; ++i) apart |= sources_[i].index - sources_[0].index - i;
    return apart == 0;
  }

 private:
  std::uint64_t epoch_ = 0;
  std::array<std::uint64_t, maximum> indices_;
  std::array<position, maximum> sources_;
};

}  // namespace penstock::inline v0_1
