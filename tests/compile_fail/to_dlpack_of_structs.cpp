// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: to_dlpack: DLPack has types for numbers, and the values of this column are none

#include <penstock/integration/to_dlpack.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

#include <vector>

struct point {
  float x, y;
};
#ifdef PENSTOCK_WRONG
using sample = point;
#else
using sample = float;
#endif

int main() {
  auto loader = penstock::from(std::vector<sample>(4)) | penstock::batch(2);
  int dimensions = 0;
  for (auto&& b : loader) dimensions += penstock::to_dlpack(b)->ndim;
  return dimensions == 0;
}
