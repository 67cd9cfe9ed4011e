// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A column that outlives its batch and its run, as tensors of other libraries need; and limits that change
// while a run works, without changing its sequence.

#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>

#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>

namespace ps = penstock;

namespace {

auto loader() {
  return ps::generated(10'000, [](std::uint64_t i) { return i * i; }) | ps::shuffle(ps::seed(3)) |
         ps::batch(10) | ps::prefetch(6) | ps::workers(4);
}

/// The first batch of a run that has ended when this returns.
ps::held_column<std::span<const std::uint64_t>> first_batch() {
  auto run = loader().open();
  auto next = run.next();
  return next->hold();
}

}  // namespace

int main() {
  const auto held = first_batch();
  std::uint64_t sum = 0;
  for (const std::uint64_t x : held.view()) sum += x;

  std::vector<std::uint64_t> calm, moved;
  for (auto&& b : loader().epoch(0)) calm.insert(calm.end(), b.begin(), b.end());
  auto run = loader().open();
  for (auto&& b : run) {
    if (b.step() == 100) run.adjust({.workers = 1, .depth = 2});  // another program needs the processors
    if (b.step() == 500) run.adjust({.workers = 4, .depth = 7});
    moved.insert(moved.end(), b.begin(), b.end());
  }
  std::uint64_t expected = 0;
  for (std::size_t i = 0; i < 10; ++i) expected += calm[i];
  std::printf("the held batch: %s; the sequence: %s\n", sum == expected ? "as it was" : "CHANGED",
              moved == calm ? "as it was" : "CHANGED");
  return sum == expected && moved == calm ? 0 : 1;
}
