// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/stage/enumerate.hpp>

#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("stage/enumerate: the index is the place in the global order, on every rank") {
  std::vector<std::uint64_t> seen;
  for (std::uint64_t rank = 0; rank < 2; ++rank)
    for (auto&& b : (ps::from(first_ints(10)) | ps::shuffle(ps::seed(1)) | ps::shard(rank, 2) |
                     ps::enumerate | ps::batch(5))
                        .epoch(0))
      for (const auto i : ps::get<"index">(b)) seen.push_back(i);
  CHECK(seen == std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
}

TEST_CASE("stage/enumerate: a record gets one more field, any other element becomes a record") {
  using sample = ps::record<ps::field<"a", int>>;
  for (auto&& b :
       (ps::from(std::vector<sample>{sample(5), sample(6)}) | ps::enumerate | ps::batch(2)).epoch(0)) {
    CHECK(ps::get<"index">(b)[1] == 1);
    CHECK(ps::get<"a">(b)[1] == 6);
  }
  for (auto&& b : (ps::from(first_ints(3)) | ps::enumerate | ps::batch(3)).epoch(0))
    CHECK(ps::get<"value">(b)[2] == 2);
}
