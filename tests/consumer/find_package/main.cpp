// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/penstock.hpp>

#include <iostream>
#include <vector>

namespace ps = penstock;

/// A user's first program: numbers in, batches out, and in every epoch all numbers in a new order.
int main() {
  std::vector<int> numbers(1000);
  for (int i = 0; i < 1000; ++i) numbers[static_cast<std::size_t>(i)] = i;
  const auto loader = ps::from(numbers) | ps::shuffle(ps::seed(7)) | ps::map([](int x) { return x * 2; }) |
                      ps::shard(0, 1) | ps::batch(64) | ps::pin_and_copy;
  auto run = loader.open();
  long sum = 0;
  for (auto epoch : run.epochs(2))
    for (auto&& b : epoch)
      for (const int x : b) sum += x;
  std::cout << "penstock " << ps::version << ": " << run.steps_per_epoch() << " batches an epoch, sum " << sum
            << '\n';
  return sum == 2 * 999 * 1000 ? 0 : 1;
}
