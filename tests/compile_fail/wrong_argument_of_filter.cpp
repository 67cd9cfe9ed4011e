// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: cannot be called with what arrives here

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>

#include <string>

int main() {
  const auto even = [](int x) { return x % 2 == 0; };
  const auto full = [](const std::string& s) { return !s.empty(); };
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::filter(full) | penstock::batch(2);
#else
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::filter(even) | penstock::batch(2);
#endif
  static_cast<void>(full);
  int sum = 0;
  for (auto&& b : loader)
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
