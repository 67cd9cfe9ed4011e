// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the value to take where a feature is missing is not one of its type

#include <penstock/codec/tf_example.hpp>

#include <cstdint>

int main() {
#ifdef PENSTOCK_WRONG
  using one = penstock::feature<"x", std::uint8_t, 300>;
#else
  using one = penstock::feature<"x", std::uint8_t, 200>;
#endif
  return static_cast<int>(sizeof(one)) == 0;
}
