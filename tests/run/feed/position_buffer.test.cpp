// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/feed/feed.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace position_buffer_test {

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("run/position_buffer: gives every ordinal once, and each within the buffer's reach") {
  for (const std::uint64_t size : {0u, 1u, 5u, 100u})
    for (const std::uint64_t capacity : {1u, 3u, 100u, 1000u}) {
      ps::position_buffer buffer(capacity, 7);
      buffer.begin(2, size);
      std::vector<std::uint64_t> seen;
      while (!buffer.empty()) {
        seen.push_back(buffer.next());
        REQUIRE(seen.back() < seen.size() - 1 + capacity);
      }
      REQUIRE(seen.size() == size);
      std::sort(seen.begin(), seen.end());
      for (std::uint64_t i = 0; i < size; ++i) REQUIRE(seen[static_cast<std::size_t>(i)] == i);
    }
}

TEST_CASE("run/position_buffer: resumes from its contents, and epochs differ") {
  ps::position_buffer one(10, 7), other(10, 7);
  one.begin(0, 50);
  for (int i = 0; i < 23; ++i) (void)one.next();
  other.restore(0, 50, one.taken(), one.given(), {one.held().begin(), one.held().end()});
  while (!one.empty()) REQUIRE(other.next() == one.next());
  CHECK(other.empty());
  one.begin(0, 50);
  other.begin(1, 50);
  bool differ = false;
  while (!one.empty()) differ = one.next() != other.next() || differ;
  CHECK(differ);
}

}  // namespace position_buffer_test
