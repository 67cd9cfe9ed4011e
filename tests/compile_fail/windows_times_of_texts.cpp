// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the column of times of windows<"episode", "time"> must have numbers

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
  auto samples = penstock::windows<"episode", "text">(rows, {}, penstock::column_at<"x">{0});
#else
  auto samples = penstock::windows<"episode", "x">(rows, {}, penstock::column_at<"x">{0});
#endif
  int count = 0;
  for (auto&& b : samples | penstock::batch(2, penstock::collate<"text">(penstock::ragged)))
    count += b.size() != 0;
  return count == 0;
}
