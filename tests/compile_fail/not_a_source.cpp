// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the left side of | is not a source

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include <vector>

int main() {
  const auto twice = [](int x) { return 2 * x; };
  const std::vector<int> numbers{1, 2, 3};
#ifdef PENSTOCK_WRONG
  auto loader = numbers | penstock::map(twice) | penstock::batch(2);
#else
  auto loader = penstock::from(numbers) | penstock::map(twice) | penstock::batch(2);
#endif
  int sum = 0;
  for (auto&& b : loader)
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
