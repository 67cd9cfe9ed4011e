// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: two of them have one name

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/zip.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

int main() {
  const auto numbers = penstock::from({1, 2, 3, 4});
#ifdef PENSTOCK_WRONG
  auto loader = penstock::zip(penstock::zip<"a">(numbers), penstock::zip<"a">(numbers)) | penstock::batch(2);
#else
  auto loader = penstock::zip(penstock::zip<"a">(numbers), penstock::zip<"b">(numbers)) |
                penstock::map([](const auto& r) { return penstock::get<"a">(r); }) | penstock::batch(2);
#endif
  int sum = 0;
  for (auto&& b : loader)
    for (const int x : b.values()) sum += static_cast<int>(x);
  return sum == 0;
}
