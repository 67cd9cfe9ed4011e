// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: behind pack there are rows of several samples

#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/pack.hpp>

#include <cstdint>
#include <vector>

int main() {
  using text = penstock::record<penstock::field<"tokens", std::vector<int>>, penstock::field<"label", int>>;
  const auto texts = penstock::generated(8, [](std::uint64_t i) { return text(std::vector<int>(i), 1); });
  const auto length = [](std::uint64_t i) { return i; };
#ifdef PENSTOCK_WRONG
  auto loader = texts | penstock::pack<"tokens">(length, 16) | penstock::map([](text t) { return t; }) |
                penstock::batch(2);
#else
  auto loader = texts | penstock::map([](text t) { return t; }) | penstock::pack<"tokens">(length, 16) |
                penstock::batch(2);
#endif
  auto run = loader.open();
  return run.next() ? 0 : 1;
}
