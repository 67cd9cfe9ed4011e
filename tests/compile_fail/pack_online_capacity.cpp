// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: into rows whose length is a number

#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/pack.hpp>

#include <cstdint>
#include <vector>

int main() {
  const auto sequence = [](std::uint64_t i) { return std::vector<int>(i % 5, 1); };
  const auto grows = [](penstock::position at) { return 8 + at.epoch; };
  [[maybe_unused]] const auto length = [](std::uint64_t i) { return i % 5; };
#ifdef PENSTOCK_WRONG
  auto loader = penstock::generated(9, sequence) | penstock::pack(grows) | penstock::batch(2);
#else
  auto loader = penstock::generated(9, sequence) | penstock::pack(length, grows) | penstock::batch(2);
#endif
  std::size_t rows = 0;
  for (auto&& b : loader.epoch(0)) rows += b.size();
  return rows == 0;
}
