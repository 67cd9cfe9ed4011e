// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: batch cannot stack values whose length is known only after decoding

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

#include <string>
#include <vector>

int main() {
  const std::vector<std::string> words{"a", "bcd"};
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from(words) | penstock::batch(2, penstock::pitched<64>);
#else
  auto loader = penstock::from(words) | penstock::batch(2, penstock::ragged);
#endif
  int sum = 0;
  for (auto&& b : loader) sum += static_cast<int>(b.size());
  return sum == 0;
}
