// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: keep_in_memory of a value with views in it

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/keep_in_memory.hpp>
#include <penstock/stage/map.hpp>

#include <optional>
#include <string>
#include <string_view>

int main() {
#ifdef PENSTOCK_WRONG
  using text = std::string_view;
#else
  using text = std::string;
#endif
  const auto some = [](int x) { return x == 0 ? std::optional<text>() : std::optional<text>("some"); };
  auto loader = penstock::from({0, 1, 2, 3}) | penstock::map(some) | penstock::keep_in_memory(1 << 20) |
                penstock::map([](const auto& one) { return one.has_value() ? 1 : 0; }) | penstock::batch(2);
  int sum = 0;
  for (auto&& b : loader.epoch(0))
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
