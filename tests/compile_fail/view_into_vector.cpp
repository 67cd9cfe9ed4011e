// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a view does not copy its values into a container

#include <penstock/core/tensor.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

#include <array>
#include <vector>

using row = std::array<float, 3>;

int main() {
  const auto loader = penstock::from(std::vector<row>{{1, 2, 3}, {4, 5, 6}}) | penstock::batch(2);
  float sum = 0;
  for (auto&& b : loader) {
#ifdef PENSTOCK_WRONG
    const std::vector<float> all = b.values();
#else
    const auto values = b.values().flat();
    const std::vector<float> all(values.begin(), values.end());
#endif
    for (const float x : all) sum += x;
  }
  return sum < 0;
}
