// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/evaluation/next_samples.hpp>

#include "support/catch.hpp"

#include <cstddef>
#include <cstdint>

namespace next_samples_test {

namespace ps = penstock;

const auto same = [](std::uint64_t i) { return i; };

TEST_CASE("evaluation/next_samples: at most 64 are found, by their positions in the run and in the source") {
  ps::next_samples next;
  const auto find = [&](std::uint64_t first, std::uint64_t n) {
    return next.find(
        3, first, n, [](std::uint64_t slot) { return 2 * slot; },
        [](std::uint64_t index, std::uint64_t slot) {
          return ps::position{index, slot};
        });
  };
  CHECK(find(10, 1000) == 64);
  CHECK(find(10, 5) == 5);
  CHECK(next.index(4) == 28);
  CHECK(next[4].at == ps::position{3, 28});
  CHECK(next[4].source == ps::position{28, 14});
  CHECK(next.sources(5).size() == 5);
  CHECK(next.sources(5)[1] == ps::position{22, 11});
}

TEST_CASE("evaluation/next_samples: says whether samples lie one behind the other in the source") {
  ps::next_samples next;
  CHECK(next.find(0, 10, 8, same, [](std::uint64_t i, std::uint64_t) { return ps::position{0, i}; }) == 8);
  CHECK(next.in_sequence(8));
  CHECK(next.find(0, 10, 8, same, [](std::uint64_t i, std::uint64_t) {
    return ps::position{0, i == 16 ? 15 : i};
  }) == 8);
  CHECK(next.in_sequence(6));
  CHECK_FALSE(next.in_sequence(8));
}

TEST_CASE("evaluation/next_samples: an order that throws ends a look-up before its sample") {
  ps::next_samples next;
  const auto source_of = [](std::uint64_t i, std::uint64_t) -> ps::position {
    if (i == 40) throw 7;
    return {0, 99 - i};
  };
  CHECK(next.find(0, 0, 64, same, source_of) == 40);
  CHECK(next[0].source.index == 99);
  CHECK(next[39].source.index == 60);
  CHECK_THROWS_AS(next.find(0, 40, 24, same, source_of), int);
  CHECK(next.find(0, 41, 59, same, source_of) == 59);
}

}  // namespace next_samples_test
