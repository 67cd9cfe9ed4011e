// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a pipeline has one answer to bad samples

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/bad_samples.hpp>
#include <penstock/stage/batch.hpp>

int main() {
  const auto begun = penstock::from({1, 2, 3}) | penstock::bad_samples::skip(1);
#ifdef PENSTOCK_WRONG
  auto loader = begun | penstock::bad_samples::replace(1) | penstock::batch(2);
#else
  auto loader = begun | penstock::batch(2);
#endif
  int sum = 0;
  for (auto&& b : loader)
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
