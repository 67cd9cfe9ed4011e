// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: feature<name, T> gives numbers, bool, bytes, std::string_view

#include <penstock/codec/tf_example.hpp>

#include <cstdint>

int main() {
#ifdef PENSTOCK_WRONG
  using one = penstock::feature<"x", char>;
#else
  using one = penstock::feature<"x", std::int8_t>;
#endif
  return static_cast<int>(sizeof(one)) == 0;
}
