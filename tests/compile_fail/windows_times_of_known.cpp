// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: windows<...> of known episodes takes one name

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/windows.hpp>
#include <penstock/source/zip.hpp>
#include <penstock/stage/batch.hpp>

#include <vector>

int main() {
  const auto rows = penstock::zip<"episode", "t">(penstock::from({1, 1, 2}), penstock::from({1.0, 2.0, 3.0}));
  const auto known = penstock::episodes_of(penstock::from({1, 1, 2}));
#ifdef PENSTOCK_WRONG
  auto samples = penstock::windows<"episode", "t">(rows, known, {.at = {0, 1}});
#else
  auto samples = penstock::windows<"episode">(rows, known, {.at = {0, 1}});
#endif
  int count = 0;
  for (auto&& b : samples | penstock::batch(2)) count += b.size() != 0;
  return count == 0;
}
