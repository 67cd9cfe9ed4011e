// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/image/values.hpp>

#include <cmath>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE void check_statistics(const double* mean, const double* std, std::size_t count) {
  for (std::size_t c = 0; c < count; ++c) {
    // Beyond these the values would be no numbers of 32 bits.
    if (!(std::fabs(mean[c]) <= 1e9))
      throw error(errc::argument, {"normalize: the mean of channel ", c,
                                   " is not a number within 1e9; pass the "
                                   "mean of values from 0 to 1, as 0.485"});
    if (!(std[c] >= 1e-9 && std[c] <= 1e9))
      throw error(errc::argument,
                  {"normalize: the deviation of channel ", c,
                   " is not a positive number from "
                   "1e-9 to 1e9; pass the standard deviation of values from 0 to 1, as 0.229"});
  }
}

}  // namespace penstock::inline v0_1::detail
