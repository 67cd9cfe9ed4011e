// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a session declares its facts in one member

#include <penstock/storage/concepts.hpp>

struct far_session {
#ifdef PENSTOCK_WRONG
  static constexpr bool has_latency = true;
#else
  static constexpr penstock::session_traits traits = {.latency = true};
#endif
};

int main() { return penstock::session_traits_of<far_session>().latency ? 0 : 1; }
