// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: batch_by cuts an epoch before samples are read

#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch_by.hpp>
#include <penstock/stage/shuffle_buffer.hpp>

#include <cstdint>

int main() {
  const auto cost = [](std::uint64_t) { return std::uint64_t{1}; };
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::shuffle_buffer(2) | penstock::batch_by(cost, 2);
#else
  auto loader =
      penstock::from({1, 2, 3, 4}) | penstock::shuffle(penstock::seed(2)) | penstock::batch_by(cost, 2);
#endif
  int sum = 0;
  for (auto&& b : loader.epoch(0))
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
