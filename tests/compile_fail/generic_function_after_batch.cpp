// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this stage works on samples but comes after batch

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/map_batch.hpp>

int main() {
  const auto doubled = [](auto& columns) {
    for (int& x : columns.values()) x *= 2;
  };
  const auto size_of = [](const auto& b) { return b.values().size(); };
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::batch(2) | penstock::map(size_of);
#else
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::batch(2) | penstock::map_batch(doubled);
#endif
  static_cast<void>(doubled);
  static_cast<void>(size_of);
  int sum = 0;
  for (auto&& b : loader)
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
