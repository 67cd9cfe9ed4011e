// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: keep_in_memory after enumerate

#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/enumerate.hpp>
#include <penstock/stage/keep_in_memory.hpp>

int main() {
  const auto numbers = penstock::from({1, 2, 3, 4});
#ifdef PENSTOCK_WRONG
  auto loader = numbers | penstock::enumerate | penstock::keep_in_memory(1 << 20) |
                penstock::shuffle(penstock::seed(1)) | penstock::batch(2);
#else
  auto loader = numbers | penstock::keep_in_memory(1 << 20) | penstock::enumerate |
                penstock::shuffle(penstock::seed(1)) | penstock::batch(2);
#endif
  std::uint64_t sum = 0;
  for (auto&& b : loader.epoch(0))
    for (const std::uint64_t i : penstock::get<"index">(b)) sum += i;
  return sum == 0;
}
