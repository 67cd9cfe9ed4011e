// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a window is of numbers or of arrays of them, and a column has something else

#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/windows.hpp>
#include <penstock/source/zip.hpp>
#include <penstock/stage/batch.hpp>

#include <string>
#include <vector>

int main() {
  const std::vector<std::string> texts(3);
  const auto rows = penstock::zip<"episode", "x", "text">(
      penstock::from({1, 1, 2}), penstock::from({1.0, 2.0, 3.0}), penstock::from(texts));
#ifdef PENSTOCK_WRONG
  auto samples = penstock::windows<"episode">(rows, {.length = 1});
#else
  auto samples = penstock::windows<"episode">(rows, {}, penstock::column_at<"x">{0});
#endif
  int count = 0;
  for (auto&& b : samples | penstock::batch(2, penstock::collate<"text">(penstock::ragged)))
    count += b.size() != 0;
  return count == 0;
}
