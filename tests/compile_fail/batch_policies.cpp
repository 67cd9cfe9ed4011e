// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: batch takes one tail policy and one of stack, ragged, pad_to_longest, pad_to_largest

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

#include <string>
#include <vector>

int main() {
  const std::vector<std::string> words{"a", "bcd"};
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from(words) | penstock::batch(2, penstock::ragged, penstock::pad_to_longest);
#else
  auto loader = penstock::from(words) | penstock::batch(2, penstock::ragged, penstock::tail::pad);
#endif
  int sum = 0;
  for (auto&& b : loader) sum += static_cast<int>(b.size());
  return sum == 0;
}
