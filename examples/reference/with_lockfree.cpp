// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One plan, run with the library's ring and with queues of Boost.Lockfree between workers and consumer.

#include <penstock/run/lockfree.hpp>

#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/workers.hpp>

#include <cstdint>
#include <cstdio>
#include <vector>

namespace ps = penstock;

int main() {
  const auto loader = ps::generated(10'000, [](std::uint64_t i) { return static_cast<float>(i) / 2; }) |
                      ps::shuffle(ps::seed(7)) | ps::batch(64) | ps::workers(2);
  const auto read = [](const auto& plan) {
    std::vector<float> all;
    for (auto&& batch : plan.epoch(0)) all.insert(all.end(), batch.begin(), batch.end());
    return all;
  };
  const auto with_ring = read(loader), with_queues = read(loader | ps::lockfree);
  std::printf("%d samples, the same sequence: %s\n", static_cast<int>(with_ring.size()),
              with_ring == with_queues ? "yes" : "no");
  return with_ring.size() == 10'000 && with_ring == with_queues ? 0 : 1;
}
