// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: packs samples by the lengths of their fields, and none is named

#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/pack.hpp>

#include <cstdint>
#include <vector>

int main() {
  const auto sequence = [](std::uint64_t i) { return std::vector<int>(i % 5, 1); };
  const auto named = [](const std::vector<int>& x) {
    return penstock::record<penstock::field<"x", std::vector<int>>>(x);
  };
#ifdef PENSTOCK_WRONG
  auto loader =
      penstock::generated(9, sequence) | penstock::map(named) | penstock::pack(8) | penstock::batch(2);
#else
  auto loader =
      penstock::generated(9, sequence) | penstock::map(named) | penstock::pack<"x">(8) | penstock::batch(2);
#endif
  std::size_t rows = 0;
  for (auto&& b : loader.epoch(0)) rows += b.size();
  return rows == 0;
}
