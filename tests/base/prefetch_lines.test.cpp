// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/base/prefetch_lines.hpp>

#include "support/catch.hpp"

#include <cstdint>
#include <limits>
#include <vector>

namespace ps = penstock;

TEST_CASE("base/prefetch_lines: changes nothing, and needs no memory where it looks") {
  const std::vector<char> bytes(4096, 'x');
  ps::detail::prefetch_lines(bytes.data(), bytes.size());
  ps::detail::prefetch_lines(bytes.data() + bytes.size(), 1);
  ps::detail::prefetch_lines(reinterpret_cast<const char*>(std::uintptr_t{4096}),  // nothing is mapped there
                             std::numeric_limits<std::uint64_t>::max());
  CHECK(bytes == std::vector<char>(4096, 'x'));
}
