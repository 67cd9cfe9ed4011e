// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/base/numpy_random_state.hpp>

#include "support/catch.hpp"

#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

namespace numpy_random_state_test {

namespace ps = penstock;

TEST_CASE("base/numpy_random_state: shuffles as numpy does") {
  // numpy 2.4.6: r = RandomState(seed); a = arange(10); r.shuffle(a); b = arange(1000); r.shuffle(b)
  struct shuffled {
    std::uint32_t seed;
    std::vector<std::uint32_t> ten;
    std::uint64_t hash_of_thousand;
  };
  const shuffled known[] = {{0, {2, 8, 4, 9, 1, 6, 7, 3, 0, 5}, 11220313021314114568u},
                            {1234, {7, 2, 9, 1, 0, 8, 4, 5, 6, 3}, 12254464550114136364u},
                            {4294967295, {6, 9, 5, 1, 8, 0, 7, 4, 2, 3}, 12060085703110982444u}};
  for (const shuffled& one : known) {
    CAPTURE(one.seed);
    ps::detail::numpy_random_state draw(one.seed);
    std::vector<std::uint32_t> ten(10), thousand(1000);
    std::iota(ten.begin(), ten.end(), 0u);
    std::iota(thousand.begin(), thousand.end(), 0u);
    draw.shuffle(ten.begin(), ten.size());
    draw.shuffle(thousand.begin(), thousand.size());
    CHECK(ten == one.ten);
    std::uint64_t hash = 0;
    for (const std::uint32_t number : thousand) hash = hash * 6364136223846793005u + number + 1;
    CHECK(hash == one.hash_of_thousand);
  }
}

TEST_CASE("base/numpy_random_state: draws what the standard library's twister draws") {
  for (const std::uint32_t seed : {0u, 5u, 0xffffffffu}) {
    ps::detail::numpy_random_state draw(seed);
    std::mt19937 same(seed);
    bool equal = true;
    for (int i = 0; i < 2000; ++i) equal = equal && draw.next32() == same();
    CHECK(equal);
    const std::uint64_t high = same();
    CHECK(draw.next64() == (high << 32 | same()));
  }
}

}  // namespace numpy_random_state_test
