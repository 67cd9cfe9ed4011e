// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: bad_samples::replace draws another sample, and this source can only be read forward

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/bad_samples.hpp>
#include <penstock/stage/batch.hpp>

#include <forward_list>

int main() {
  const std::forward_list<int> numbers{1, 2, 3};
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from(numbers) | penstock::bad_samples::replace(1) | penstock::batch(2);
#else
  auto loader = penstock::from(numbers) | penstock::bad_samples::skip(1) | penstock::batch(2);
#endif
  int sum = 0;
  for (auto&& b : loader)
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
