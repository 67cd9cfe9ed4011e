// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: pitched<bytes> needs a power of two

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

#include <vector>

int main() {
  const std::vector<std::vector<int>> lists{{1, 2}, {3, 4}};
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from(lists) | penstock::batch(2, penstock::pitched<3>);
#else
  auto loader = penstock::from(lists) | penstock::batch(2, penstock::pitched<4>);
#endif
  int sum = 0;
  for (auto&& b : loader) sum += static_cast<int>(b.size());
  return sum == 0;
}
