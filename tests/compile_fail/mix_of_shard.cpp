// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: positions are global, write shard(rank, world) once, after it

#include <penstock/order/shard.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/mix.hpp>
#include <penstock/stage/batch.hpp>

int main() {
  const auto numbers = penstock::from({1, 2, 3, 4});
#ifdef PENSTOCK_WRONG
  auto loader =
      penstock::mix(penstock::weights{1, 1}, numbers, numbers | penstock::shard(0, 1)) | penstock::batch(2);
#else
  auto loader = penstock::mix(penstock::weights{1, 1}, numbers, numbers) | penstock::batch(2);
#endif
  int sum = 0;
  for (auto&& b : loader.epoch(0))
    for (const int x : b.values()) sum += static_cast<int>(x);
  return sum == 0;
}
