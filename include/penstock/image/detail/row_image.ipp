// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/image/detail/row_image.hpp>

#include <penstock/core/error.hpp>

#include <cstdio>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE void check_range(const char* operation, const char* what, double value, double low,
                                 double high) {
  if (value >= low && value <= high) return;
  char given[40], from[40], to[40];
  std::snprintf(given, sizeof given, "%g", value);
  std::snprintf(from, sizeof from, "%g", low);
  std::snprintf(to, sizeof to, "%g", high);
  throw error(errc::argument,
              {operation, ": ", what, " is ", given, "; pass a number from ", from, " to ", to});
}

}  // namespace penstock::inline v0_1::detail
