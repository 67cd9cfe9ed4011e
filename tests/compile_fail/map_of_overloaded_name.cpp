// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: map is given the name of several functions

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include <cmath>

int main() {
  const auto numbers = penstock::from({1.0, 4.0});
#ifdef PENSTOCK_WRONG
  auto loader = numbers | penstock::map(std::sqrt) | penstock::batch(2);
#else
  auto loader = numbers | penstock::map([](double x) { return std::sqrt(x); }) | penstock::batch(2);
#endif
  double sum = 0;
  for (auto&& b : loader)
    for (const double x : b.values()) sum += x;
  return sum < 0;
}
