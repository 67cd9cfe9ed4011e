// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: batch stacks numbers, arrays, texts, bytes and records of these

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include <map>

int main() {
  const auto spell = [](int x) { return std::map<int, int>{{x, 1}}; };
  const auto maximum = [](const std::map<int, int>& m) { return m.begin()->second; };
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::map(spell) | penstock::batch(2);
#else
  auto loader =
      penstock::from({1, 2, 3, 4}) | penstock::map(spell) | penstock::map(maximum) | penstock::batch(2);
#endif
  static_cast<void>(maximum);
  int sum = 0;
  for (auto&& b : loader) sum += static_cast<int>(b.size());
  return sum == 0;
}
