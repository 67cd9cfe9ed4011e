// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plans, states, shapes and errors printed with fmt.

#include <penstock/integration/fmt.hpp>

#include <penstock/core/error.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include <fmt/format.h>

#include <array>
#include <string>
#include <vector>

namespace ps = penstock;

int main() {
  using image = std::array<float, 12>;
  const auto loader = ps::from(std::vector<int>{1, 2, 3, 4, 5, 6}) | ps::shuffle(ps::seed(7)) |
                      ps::map([](int x) {
                        if (x == 6) throw ps::error(ps::errc::format, "a six");
                        return image{static_cast<float>(x)};
                      }) |
                      ps::batch(1);
  fmt::print("{}", loader);

  auto run = loader.open();
  std::string last, failure;
  try {
    for (auto&& batch : run) {
      last = fmt::format("{}", run.state());
      fmt::print("step of shape {:>8}: {:.40}...\n", batch.values().shape(), last);
    }
  } catch (const ps::error& e) {
    failure = fmt::format("{}", e);
    fmt::print("{} ({})\n", e, e.code());
  }
  fmt::print("{}", run.counters());

  const bool right = ps::state_from_string(last) == run.state() && failure.starts_with("penstock: a six") &&
                     failure.find("position") != std::string::npos;
  return right ? 0 : 1;
}
