// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/position.hpp>

#include <algorithm>
#include <array>
#include <span>

namespace penstock::inline v0_1 {

/// A sample's position in the order of its run, by which random numbers and errors go, and in its source.
struct sample_position {
  position at, source;
};

/// The positions in the source of the samples that a worker evaluates next, up to 64: they are computed
/// together, so that permutations overlap with each other and not with the reading of samples.
class next_samples {
 public:
  static constexpr std::size_t maximum = 64;

  /// Computes the first n, at most `maximum`: `source_of(i)` gives one. Returns how many there are: it stops
  /// before one for which that throws, and throws if that is the first.
  std::size_t find(std::uint64_t n, auto source_of) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(n, maximum));
    std::size_t found = 0;
    try {
      for (; found < count; ++found) sources_[found] = source_of(found);
    } catch (...) {
      if (found == 0) throw;
    }
    return found;
  }
  [[nodiscard]] position operator[](std::size_t i) const noexcept { return sources_[i]; }
  [[nodiscard]] std::span<const position> first(std::size_t n) const noexcept { return {sources_.data(), n}; }
  /// Whether the first n lie one behind the other in the source.
  [[nodiscard]] bool in_sequence(std::size_t n) const noexcept {
    std::uint64_t apart = 0;
    for (std::size_t i = 0; i < n; ++i) apart |= sources_[i].index - sources_[0].index - i;
    return apart == 0;
  }

 private:
  std::array<position, maximum> sources_;
};

}  // namespace penstock::inline v0_1
