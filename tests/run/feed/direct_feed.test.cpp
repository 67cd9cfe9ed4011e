// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/feed/direct_feed.hpp>

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

TEST_CASE("run/direct_feed: random compositions") {
  const penstock_test::deadline guard("random compositions", std::chrono::seconds(240));
  ps::rng draw(20240, 0, 0);
  const int rounds = penstock_test::long_tests() ? 400 : 100;
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t n = draw.below(120), b = 1 + draw.below(9), world = 1 + draw.below(3),
                        rank = draw.below(world);
    const std::uint64_t capacity = 1 + draw.below(20), seed = draw(), steps = 1 + draw.below(12);
    const auto policy = static_cast<ps::tail>(draw.below(3));
    const std::uint64_t modulus = 1 + draw.below(3);
    INFO("round " << round << ": n " << n << ", b " << b << ", rank " << rank << " of " << world
                  << ", capacity " << capacity << ", seed " << seed << ", steps " << steps << ", modulus "
                  << modulus);
    const auto keep = [modulus](std::uint64_t x) { return x / 1000 % modulus == 0; };
    const auto start =
        ps::generated(n, identity) | ps::map(noisy) | ps::shuffle(seed) | ps::skip(draw.below(5));
    const unsigned workers = static_cast<unsigned>(draw.below(4)),
                   others = static_cast<unsigned>(draw.below(4));
    const std::size_t stride = 1 + static_cast<std::size_t>(draw.below(4));
    const auto check = [&](const auto& plan) {
      check_all_stops(plan | ps::workers(workers) | ps::prefetch(1 + draw.below(6)),
                      plan | ps::workers(others) | ps::prefetch(1), 2, stride);
    };
    switch (draw.below(6)) {
      case 0:
        check(start | ps::take(draw.below(100)) | ps::shard(rank, world) | ps::batch(b, policy));
        break;
      case 1:
        check(start | ps::shuffle_buffer(capacity, seed) | ps::shard(rank, world) | ps::batch(b, policy));
        break;
      case 2:
        check(start | ps::shard(rank, world) | ps::shuffle_buffer(capacity, seed) | ps::batch(b, policy));
        break;
      case 3:
        check(start | ps::repeat(1 + draw.below(3)) | ps::filter(keep) | ps::batch(b, policy));
        break;
      case 4:
        if (n > 20)
          check(start | ps::filter(keep) | ps::shard(rank, world) | ps::batch(b) | ps::steps(steps));
        break;
      default:
        check(start | ps::shard(rank, world) | ps::filter(keep) | ps::skip(draw.below(4)));
        break;
    }
  }
}
