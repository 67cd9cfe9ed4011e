// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: is ambiguous

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include <vector>

struct halved {
  double operator()(double x) const { return x / 2; }
  long operator()(long x) const { return x / 2; }
};

int main() {
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::map(halved{}) | penstock::batch(2);
#else
  auto loader = penstock::from({1L, 2L, 3L, 4L}) | penstock::map(halved{}) | penstock::batch(2);
#endif
  long sum = 0;
  for (auto&& b : loader)
    for (const auto x : b.values()) sum += static_cast<long>(x);
  return sum == 0;
}
