// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: pad_to_largest_with<value> fills with a value that the numbers of a field cannot hold

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

#include <cstdint>
#include <vector>

int main() {
  const std::vector<std::vector<std::uint8_t>> lists{{1, 2}, {3}};
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from(lists) | penstock::batch(2, penstock::pad_to_largest_with<-1>);
#else
  auto loader = penstock::from(lists) | penstock::batch(2, penstock::pad_to_largest_with<255>);
#endif
  int sum = 0;
  for (auto&& b : loader) sum += static_cast<int>(b.size());
  return sum == 0;
}
