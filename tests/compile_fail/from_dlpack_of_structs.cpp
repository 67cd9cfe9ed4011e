// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: from_dlpack<T>: DLPack has types for numbers, and T is none

#include <penstock/integration/from_dlpack.hpp>

#include <utility>

struct point {
  float x, y;
};
#ifdef PENSTOCK_WRONG
using value = point;
#else
using value = float;
#endif

int main() {
  penstock::dlpack_tensor tensor;
  return static_cast<int>(penstock::from_dlpack<value>(std::move(tensor)).size());
}
