// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: derive needs the samples as the source has them

#include <penstock/inspection/derive.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>

int main() {
#ifdef PENSTOCK_WRONG
  const auto plan = penstock::from({1, 2, 3, 4}) | penstock::filter([](int x) { return x > 1; });
#else
  const auto plan = penstock::from({1, 2, 3, 4}) | penstock::map([](int x) { return x + 1; });
#endif
  const auto index = penstock::derive(
      plan, "half", [](int x) { return x / 2; }, "/dev/null/nothing");
  return index.size() == 0;
}
