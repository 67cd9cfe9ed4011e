// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifdef CONSUMER_HAS_ZSTD
#include <penstock/codec/zstd.hpp>
#endif
#include <penstock/penstock.hpp>

#include <vector>

long sum_of_other();
long sum_of_other() {
  long sum = 0;
  for (auto&& b : penstock::from(std::vector<int>{1, 2, 3}) | penstock::batch(2) | penstock::workers(1))
    for (const int x : b) sum += x;
  return sum;
}
