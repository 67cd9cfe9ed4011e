// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/call.hpp>

#include "support/catch.hpp"

#include <set>

namespace ps = penstock;

namespace call_test {

struct none {};

std::uint64_t first_word(ps::position at, std::uint32_t part, std::uint64_t seed, std::uint64_t stream) {
  none scratch;
  return ps::call<none>{at, part, seed, stream, scratch}.random()();
}

}  // namespace call_test

TEST_CASE("core/call: random numbers depend on seed, position, part and stage") {
  using call_test::first_word;
  CHECK(first_word({1, 2}, 0, 3, 4) == ps::rng(3, 1, 2, 4)());
  CHECK(first_word({1, 2}, 1, 3, 4) == first_word({1, 2}, 1, 3, 4));
  const std::set<std::uint64_t> all{first_word({1, 2}, 0, 3, 4), first_word({2, 2}, 0, 3, 4),
                                    first_word({1, 3}, 0, 3, 4), first_word({1, 2}, 1, 3, 4),
                                    first_word({1, 2}, 2, 3, 4), first_word({1, 2}, 0, 4, 4),
                                    first_word({1, 2}, 0, 3, 5), first_word({1, 2}, 1, 3, 5)};
  CHECK(all.size() == 8);
}
