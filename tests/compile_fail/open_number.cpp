// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: open takes a state, a std::stop_token, or both

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/workers.hpp>

int main() {
  const auto loader = penstock::from({1, 2, 3, 4}) | penstock::batch(2) | penstock::workers(2);
#ifdef PENSTOCK_WRONG
  auto run = loader.open(2);
#else
  auto run = loader.open();
#endif
  int sum = 0;
  for (auto&& b : run)
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
