// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: to_dlpack: the batch has no field of that name

#include <penstock/core/record.hpp>
#include <penstock/integration/to_dlpack.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

#include <vector>

using sample = penstock::record<penstock::field<"a", int>, penstock::field<"b", int>>;

int main() {
  auto loader = penstock::from(std::vector<sample>{sample(1, 2), sample(3, 4)}) | penstock::batch(2);
  int dimensions = 0;
  for (auto&& b : loader) {
#ifdef PENSTOCK_WRONG
    dimensions += penstock::to_dlpack<"x">(b)->ndim;
#else
    dimensions += penstock::to_dlpack<"a">(b)->ndim;
#endif
  }
  return dimensions == 0;
}
