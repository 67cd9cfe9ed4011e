// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a state is no number; write to_string(run.state())

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

#include <string>

int main() {
  const auto loader = penstock::from({1, 2, 3, 4}) | penstock::batch(2);
  auto run = loader.open();
#ifdef PENSTOCK_WRONG
  const std::string text = std::to_string(run.state());
#else
  const std::string text = to_string(run.state());
#endif
  return text.empty();
}
