// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a reader declares its facts in one member

#include <penstock/evaluation/reader_calls.hpp>

struct far_reader {
#ifdef PENSTOCK_WRONG
  static constexpr bool has_latency = true;
#else
  static constexpr penstock::reader_traits traits = {.in_memory = true};
#endif
};

int main() { return penstock::reader_traits_of<far_reader>.in_memory ? 0 : 1; }
