// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/chunk_feed.hpp>

#include <penstock/order/repeat.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/skip.hpp>
#include <penstock/order/take.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/memory.hpp>
#include <penstock/stage/seed.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/stage/steps.hpp>
#include <penstock/stage/unbatch.hpp>

#include "support/catch.hpp"
#include "support/engine_test.hpp"
#include "support/resume_test.hpp"
#include "support/test_data.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace ps = penstock;
using namespace engine_test;

TEST_CASE("run/chunk_feed: after every batch, for every stage") {
  const penstock_test::deadline guard("every stage");
  const auto source = ps::generated(41, identity) | ps::map(noisy);
  SECTION("filter") { check_all_stops(source | ps::shuffle(2) | ps::filter(odd_thirds) | ps::batch(3)); }
  SECTION("filter and steps") {
    check_all_stops(source | ps::shuffle(2) | ps::filter(odd_thirds) | ps::batch(3) | ps::steps(7));
  }
  SECTION("filter between take and skip") {
    check_all_stops(source | ps::take(40) | ps::filter(odd_thirds) | ps::skip(2) | ps::take(9) |
                    ps::batch(2) | ps::skip(1));
  }
  SECTION("filter before shard") {
    check_all_stops(source | ps::filter(odd_thirds) | ps::shard(1, 3) | ps::batch(2) | ps::steps(5));
  }
  SECTION("filter after shard and buffer") {
    check_all_stops(source | ps::shard(1, 2) | ps::shuffle_buffer(5, 1) | ps::filter(odd_thirds) |
                    ps::batch(2) | ps::steps(5));
  }
  SECTION("unbatch") {
    check_all_stops(ps::generated(25, [](std::uint64_t x) { return words_of(x); }) | ps::shuffle(2) |
                    ps::unbatch | ps::map(noisy) | ps::batch(4));
  }
  SECTION("rows") { check_all_stops(source | ps::shuffle(2)); }
  SECTION("rows of a rank") {
    check_all_stops(source | ps::shuffle(2) | ps::shard(1, 3) | ps::shuffle_buffer(4));
  }
  SECTION("rows that were filtered") { check_all_stops(source | ps::filter(odd_thirds) | ps::take(10)); }
  SECTION("rows of rows") {
    check_all_stops(ps::generated(25, [](std::uint64_t x) { return words_of(x); }) | ps::shuffle_buffer(5) |
                    ps::unbatch);
  }
}
