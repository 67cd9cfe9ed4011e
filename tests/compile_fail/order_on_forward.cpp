// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: random access to a source that can only be read forward

#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/shuffle_buffer.hpp>

#include <forward_list>

int main() {
  const std::forward_list<int> numbers{1, 2, 3};
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from(numbers) | penstock::shuffle(penstock::seed(1)) | penstock::batch(2);
#else
  auto loader = penstock::from(numbers) | penstock::shuffle_buffer(2) | penstock::batch(2);
#endif
  int sum = 0;
  for (auto&& b : loader.epoch(0))
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
