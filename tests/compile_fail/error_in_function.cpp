// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: no member named 'z'

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include <vector>

struct point {
  int x, y;
};

int main() {
  const auto points = penstock::from(std::vector<point>{{1, 2}, {3, 4}});
#ifdef PENSTOCK_WRONG
  auto loader = points | penstock::map([](const auto& p) { return p.x + p.z; }) | penstock::batch(2);
#else
  auto loader = points | penstock::map([](const auto& p) { return p.x + p.y; }) | penstock::batch(2);
#endif
  int sum = 0;
  for (auto&& b : loader)
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
