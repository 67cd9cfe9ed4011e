// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: and after batch over a forward source

#include <penstock/order/repeat.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

#include <forward_list>

int main() {
  const std::forward_list<int> numbers{1, 2, 3};
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from(numbers) | penstock::batch(2) | penstock::repeat(2);
#else
  auto loader = penstock::from(numbers) | penstock::repeat(2) | penstock::batch(2);
#endif
  int sum = 0;
  for (auto&& b : loader)
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
