// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/delivery/delivery_shell.hpp>

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

namespace delivery_shell_test {

namespace ps = penstock;
using namespace engine_test;

TEST_CASE("run/delivery_shell: resumes after every batch, for every stage") {
  const penstock_test::deadline guard("every stage");
  const auto source = ps::generated(41, identity) | ps::map(noisy);
  SECTION("plain") { check_all_stops(source | ps::batch(4)); }
  SECTION("shuffle") { check_all_stops(source | ps::shuffle(ps::seed(3)) | ps::batch(4, ps::tail::drop), 3); }
  SECTION("windowed, lanes, shard") {
    check_all_stops(ps::generated(41, identity, {0, 10, 20, 41}) | ps::map(noisy) |
                    ps::shuffle(ps::seed(3), ps::window(2), ps::lanes(3)) | ps::shard(1, 3) |
                    ps::batch(4, ps::tail::pad));
  }
  SECTION("shuffle_buffer") { check_all_stops(source | ps::shuffle_buffer(7, ps::seed(5)) | ps::batch(4)); }
  SECTION("shuffle_buffer before shard") {
    check_all_stops(source | ps::shuffle_buffer(7, ps::seed(5)) | ps::shard(1, 2) | ps::batch(3));
  }
  SECTION("shuffle_buffer after shard") {
    check_all_stops(source | ps::shard(1, 2) | ps::shuffle_buffer(7, ps::seed(5)) | ps::batch(3));
  }
  SECTION("take, skip, repeat") {
    check_all_stops(source | ps::shuffle(ps::seed(1)) | ps::skip(3) | ps::take(20) | ps::repeat(2) |
                    ps::batch(6));
  }
  SECTION("after batch") {
    check_all_stops(source | ps::batch(4) | ps::skip(1) | ps::take(5) | ps::repeat(2));
  }
  SECTION("steps") { check_all_stops(source | ps::shuffle(ps::seed(2)) | ps::batch(8) | ps::steps(9)); }
}

TEST_CASE("run/delivery_shell: elastic plans with batches in place resume with another number of ranks") {
  const penstock_test::deadline guard("elastic");
  const auto source = ps::generated(100, identity) | ps::map(noisy) | ps::shuffle(ps::seed(3));
  for (const std::uint64_t before : {1u, 2u, 3u, 6u}) {
    for (const std::uint64_t after : {1u, 2u, 6u}) {
      for (const std::size_t stop : {0u, 3u, 8u, 10u}) {
        INFO(before << " ranks to " << after << " after step " << stop);
        check_elastic([&](std::uint64_t rank, std::uint64_t world,
                          std::uint64_t b) { return source | ps::shard(rank, world) | ps::batch(b); },
                      12, before, after, stop);
        check_elastic(
            [&](std::uint64_t rank, std::uint64_t world, std::uint64_t b) {
              return source | ps::shuffle_buffer(10) | ps::shard(rank, world) | ps::batch(b, ps::tail::pad);
            },
            12, before, after, stop);
      }
    }
  }
}

TEST_CASE("run/delivery_shell: elastic plans with a filter resume with another number of ranks") {
  const penstock_test::deadline guard("elastic");
  const auto source = ps::generated(100, identity) | ps::map(noisy) | ps::shuffle(ps::seed(3));
  for (const std::uint64_t before : {1u, 2u, 3u, 6u}) {
    for (const std::uint64_t after : {1u, 2u, 6u}) {
      for (const std::size_t stop : {0u, 3u, 8u, 10u}) {
        INFO(before << " ranks to " << after << " after step " << stop);
        check_elastic(
            [&](std::uint64_t rank, std::uint64_t world, std::uint64_t b) {
              return source | ps::filter(odd_thirds) | ps::shard(rank, world) | ps::batch(b) | ps::steps(7);
            },
            12, before, after, stop);
      }
    }
  }
}

TEST_CASE("run/delivery_shell: a loop over rows resumes with another number of ranks") {
  const penstock_test::deadline guard("elastic rows");
  const auto check = [](auto make) {
    for (const std::uint64_t before : {2u, 3u}) {
      for (const std::uint64_t after : {1u, 2u, 4u}) {
        for (const std::size_t stop : {0u, 4u, 7u}) {
          numbers all;
          std::string left;
          for (std::uint64_t rank = 0; rank < before; ++rank) {
            const trace whole = follow(make(rank, before) | ps::workers(1), 1, true);
            for (std::size_t i = 0; i <= stop; ++i) all.push_back(whole.elements[i][0]);
            left = whole.states[stop];
          }
          for (std::uint64_t rank = 0; rank < after; ++rank)
            for (const numbers& row :
                 follow(make(rank, after), 1, false, ps::state_from_string(left)).elements)
              all.push_back(row[0]);
          numbers wanted;
          for (const numbers& row : follow(make(0, 1), 1, false).elements) wanted.push_back(row[0]);
          std::sort(all.begin(), all.end());
          std::sort(wanted.begin(), wanted.end());
          CHECK(all == wanted);
        }
      }
    }
  };
  const auto source = ps::generated(60, identity) | ps::map(noisy);
  check([&](std::uint64_t rank, std::uint64_t world) {
    return source | ps::shuffle(ps::seed(4)) | ps::shard(rank, world);
  });
  check([&](std::uint64_t rank, std::uint64_t world) {
    return source | ps::shuffle_buffer(6) | ps::shard(rank, world);
  });
  check([&](std::uint64_t rank, std::uint64_t world) {
    return source | ps::filter([](std::uint64_t x) { return x / 1000 % 2 == 0; }) | ps::shard(rank, world);
  });
}

}  // namespace delivery_shell_test
