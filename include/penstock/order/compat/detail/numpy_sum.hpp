// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#include <algorithm>
#include <array>
#include <span>

namespace penstock::inline v0_1::detail {

/// `numpy.sum`: adds in eight partial sums, and in halves above 128 values. Another order of additions could
/// round to a different sample.
[[nodiscard]] inline double numpy_sum(std::span<const double> values) {
  if (values.size() < 8) {
    double all = 0;
    for (const double one : values) all += one;
    return all;
  }
  if (values.size() > 128) {
    const std::size_t half = values.size() / 2 / 8 * 8;
    return numpy_sum(values.first(half)) + numpy_sum(values.subspan(half));
  }
  std::array<double, 8> sums{};
  std::copy_n(values.begin(), 8, sums.begin());
  std::size_t i = 8;
  for (; i + 8 <= values.size(); i += 8)
    for (std::size_t k = 0; k < 8; ++k) sums[k] += values[i + k];
  double all = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
  for (; i < values.size(); ++i) all += values[i];
  return all;
}

}  // namespace penstock::inline v0_1::detail
