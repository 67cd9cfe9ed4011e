// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: open takes a state, and this is a text; write open(state_from_string(text))

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

#include <string>

int main() {
  const auto loader = penstock::from({1, 2, 3, 4}) | penstock::batch(2);
  const std::string saved = penstock::to_string(loader.open().state());
#ifdef PENSTOCK_WRONG
  auto run = loader.open(saved);
#else
  auto run = loader.open(penstock::state_from_string(saved));
#endif
  int sum = 0;
  for (auto&& b : run)
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
