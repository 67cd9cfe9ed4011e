// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a stage calls its function with one argument

#include <penstock/core/record.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include <vector>

using sample = penstock::record<penstock::field<"a", int>, penstock::field<"b", float>>;

int main() {
  const auto whole = std::vector<sample>{sample(1, 2.f), sample(3, 4.f)};
#ifdef PENSTOCK_WRONG
  auto loader =
      penstock::from(whole) | penstock::map([](int a, float b) { return a * b; }) | penstock::batch(2);
#else
  auto loader = penstock::from(whole) | penstock::map([](const sample& s) {
                  return static_cast<float>(penstock::get<"a">(s)) * penstock::get<"b">(s);
                }) |
                penstock::batch(2);
#endif
  float sum = 0;
  for (auto&& b : loader)
    for (const float x : b.values()) sum += x;
  return sum < 0;
}
