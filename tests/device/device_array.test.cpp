// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/device/device_array.hpp>

#include "support/catch.hpp"

namespace device_device_array_test {

namespace ps = penstock;

TEST_CASE("device/device_array: an address, a shape and strides") {
  int memory[12] = {};
  const ps::device_array<int> dense(memory, ps::extents(2, 3));
  CHECK(dense.data() == memory);
  CHECK(dense.size() == 6);
  CHECK(dense.dense());
  CHECK(dense.strides()[0] == 3);
  const ps::device_array<int> wide(memory, ps::extents(2, 3), {6, 1});
  CHECK(wide.size() == 6);
  CHECK_FALSE(wide.dense());
  CHECK(ps::device_array<float>().data() == nullptr);
}

}  // namespace device_device_array_test
