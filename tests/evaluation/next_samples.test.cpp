// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/evaluation/next_samples.hpp>

#include "support/catch.hpp"

#include <cstddef>
#include <cstdint>

namespace next_samples_test {

namespace ps = penstock;

TEST_CASE("evaluation/next_samples: at most 64 are found, and it is known whether they are in sequence") {
  ps::next_samples next;
  const auto in_order = [](std::size_t i) { return ps::position{2, 10 + i}; };
  CHECK(next.find(1000, in_order) == 64);
  CHECK(next.in_sequence(64));
  CHECK(next.find(8, [](std::size_t i) { return ps::position{2, i == 6 ? 15 : 10 + i}; }) == 8);
  CHECK(next[6] == ps::position{2, 15});
  CHECK(next.first(8).size() == 8);
  CHECK(next.first(8)[7] == ps::position{2, 17});
  CHECK(next.in_sequence(6));
  CHECK_FALSE(next.in_sequence(8));
}

TEST_CASE("evaluation/next_samples: an order that throws ends a look-up before its sample") {
  ps::next_samples next;
  std::uint64_t first = 0;
  const auto source_of = [&](std::size_t i) -> ps::position {
    if (first + i == 40) throw 7;
    return {0, 99 - first - i};
  };
  CHECK(next.find(64, source_of) == 40);
  CHECK(next[0].index == 99);
  CHECK(next[39].index == 60);
  first = 40;
  CHECK_THROWS_AS(next.find(24, source_of), int);
  first = 41;
  CHECK(next.find(59, source_of) == 59);
}

}  // namespace next_samples_test
