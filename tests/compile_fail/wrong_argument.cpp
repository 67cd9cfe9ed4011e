// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: cannot be called with what arrives here

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include <string>

int main() {
  const auto twice = [](int x) { return 2 * x; };
  const auto length = [](const std::string& s) { return s.size(); };
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::map(length) | penstock::batch(2);
#else
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::map(twice) | penstock::batch(2);
#endif
  static_cast<void>(length);
  int sum = 0;
  for (auto&& b : loader)
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
