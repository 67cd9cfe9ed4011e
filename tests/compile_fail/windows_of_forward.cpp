// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: windows needs rows at any place, and this source can only be read forward

#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/webdataset_stream.hpp>
#include <penstock/source/windows.hpp>
#include <penstock/source/zip.hpp>
#include <penstock/stage/batch.hpp>

#include <string>
#include <vector>

int main() {
#ifdef PENSTOCK_WRONG
  auto samples = penstock::windows(penstock::webdataset_stream("train.tar"), {.length = 1});
#else
  auto samples = penstock::windows(penstock::from({1.0, 2.0}), {.length = 1});
#endif
  int count = 0;
  for (auto&& b : samples | penstock::batch(2)) count += b.size() != 0;
  return count == 0;
}
