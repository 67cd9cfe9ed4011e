// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect beside the error: penstock: write #include <penstock/device/cuda.hpp>, and link penstock::cuda

#include <penstock/device/simulated.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/pin_and_copy.hpp>

int main() {
#ifdef PENSTOCK_WRONG
  const auto device = penstock::cuda{};
#else
  const auto device = penstock::simulated{};
#endif
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::batch(2) | penstock::pin_and_copy(device);
  int sum = 0;
  for (auto&& b : loader)
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
