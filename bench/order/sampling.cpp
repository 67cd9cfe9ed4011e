// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The cost of a position of the stages that choose samples: nanoseconds in a loop over 2^22 samples,
// the median of 9 rounds, and the time to make the order. The table is in docs/order.md.

#include "support/harness.hpp"

#include <penstock/order.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

namespace ps = penstock;

namespace {

constexpr std::uint64_t samples = std::uint64_t{1} << 22;
volatile std::uint64_t keep = 0;

double since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
}

template <class Stage>
void measure(const char* name, const Stage& stage) {
  const std::shared_ptr<const ps::source_places> stored(new ps::source_places(0, samples));
  std::vector<double> position, making;
  for (int round = 0; round < 9; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    const auto made = stage.make({samples, nullptr, stored});
    making.push_back(since(begin) * 1e-6);
    const auto bound = made.bind(0);
    // Every position if there are few, otherwise every k-th, so that all of the tables are used.
    const std::uint64_t calls = std::min<std::uint64_t>(made.size(), 1'000'000), step = made.size() / calls;
    std::uint64_t sum = 0;
    const auto loop = std::chrono::steady_clock::now();
    for (std::uint64_t i = 0; i < calls; ++i) sum += bound(i * step).index;
    position.push_back(since(loop) / static_cast<double>(calls));
    keep = sum;
  }
  std::printf("| %s | %.0f | %.1f |\n", name, bench::quantile(position, 0.5), bench::quantile(making, 0.5));
}

template <class F>
ps::sample_list<int> values(const F& f) {
  std::vector<int> all;
  for (std::uint64_t i = 0; i < samples; ++i) all.push_back(static_cast<int>(f(i)));
  return ps::sample_list(all);
}

}  // namespace

int main() {
  std::printf("| what | ns a position | ms to make |\n|---|---:|---:|\n");
  measure("`split(0.5)`", ps::split(0.5, ps::seed(1)));
  measure("`split(0.9)`", ps::split(0.9, ps::seed(1)));
  measure("`split(0.9).complement()`", ps::split(0.9, ps::seed(1)).complement());
  measure("`split(0.99)`", ps::split(0.99, ps::seed(1)));
  measure("`fold(0, 5)`", ps::fold(0, 5, ps::seed(1)));
  measure("`fold(0, 5).complement()`", ps::fold(0, 5, ps::seed(1)).complement());
  measure("`fold(0, 100)`", ps::fold(0, 100, ps::seed(1)));
  const auto label = values([](std::uint64_t i) { return ps::mix64(i) % 1000; });
  measure("`subset`, 2 million one by one", ps::subset(label, [](int x) { return x < 500; }));
  const auto runs = values([](std::uint64_t i) { return i / 1024; });
  measure("`subset`, 2048 runs", ps::subset(runs, [](int x) { return x % 2 == 0; }));
  measure("`class_balanced`, 1000 classes", ps::class_balanced(label, ps::seed(1)));
  const auto rare = values([](std::uint64_t i) {
    const std::uint64_t x = ps::mix64(i) % 10'000;
    return x < 9900 ? 0 : x - 9900;
  });
  measure("`class_balanced`, one large and 99 small classes", ps::class_balanced(rare, ps::seed(1)));
  std::vector<double> weights;
  for (std::uint64_t i = 0; i < samples; ++i) weights.push_back(static_cast<double>(1 + ps::mix64(i) % 9));
  measure("`weighted`", ps::weighted(weights, ps::seed(1)));
}
