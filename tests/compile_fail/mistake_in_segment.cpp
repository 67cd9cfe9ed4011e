// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: cannot be called with what arrives here

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include <string>

int main() {
  const auto twice = [](int x) { return 2 * x; };
  const auto length = [](const std::string& s) { return static_cast<int>(s.size()); };
  const auto stages = penstock::map(length) | penstock::map(twice) | penstock::batch(2);
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from({1, 2, 3, 4}) | stages;
#else
  auto loader = penstock::from({std::string("one"), std::string("two")}) | stages;
#endif
  int sum = 0;
  for (auto&& b : loader)
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
