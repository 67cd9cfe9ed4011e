// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/core/any_count.hpp>

#include <penstock/order/fold.hpp>
#include <penstock/order/repeat.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/skip.hpp>
#include <penstock/order/take.hpp>
#include <penstock/order/weights.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/memory.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/stage/steps.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <cstdint>
#include <limits>

namespace ps = penstock;
using namespace penstock_test;

static_assert(ps::any_count(7).of("x") == 7);
static_assert(ps::any_count(7u).of("x") == 7);
static_assert(ps::any_count(std::int8_t{7}).of("x") == 7);
static_assert(ps::any_count(std::uint64_t{1} << 63).of("x") == std::uint64_t{1} << 63);
static_assert(ps::take(std::int16_t{5}).count == 5);

TEST_CASE("core/any_count: a negative number is refused with the number and the name") {
  const auto says = [](auto n) { return error_of([n] { (void)ps::any_count(n).of("skip"); }); };
  CHECK_THAT(says(-1), contains("skip(-1): the number is negative"));
  CHECK_THAT(says(std::int8_t{-128}), contains("skip(-128)"));
  CHECK_THAT(says(std::numeric_limits<std::int64_t>::min()), contains("skip(-9223372036854775808)"));
  CHECK(says(std::numeric_limits<std::uint64_t>::max()).empty());
}

TEST_CASE("core/any_count: every part that takes a count refuses a negative one by name") {
  const int n = -3;
  const auto refused = [](const char* name, auto f) {
    INFO(name);
    const std::string text = error_of(f);
    CHECK_THAT(text, contains(std::string(name) + "(-3): the number is negative"));
    CHECK_THAT(text, contains("[stage " + std::string(name) + "]"));
  };
  refused("workers", [&] { (void)ps::workers(n); });
  refused("take", [&] { (void)ps::take(n); });
  refused("skip", [&] { (void)ps::skip(n); });
  refused("repeat", [&] { (void)ps::repeat(n); });
  refused("shard", [&] { (void)ps::shard(n, 2); });
  refused("shard", [&] { (void)ps::shard(0, n); });
  refused("replicate", [&] { (void)ps::replicate(n); });
  refused("window", [&] { (void)ps::window(n); });
  refused("lanes", [&] { (void)ps::lanes(n); });
  refused("fold", [&] { (void)ps::fold(n, 5, ps::seed(1)); });
  refused("samples_per_epoch", [&] { (void)ps::samples_per_epoch(n); });
  refused("batch", [&] { (void)ps::batch(n); });
  refused("global_batch", [&] { (void)ps::global_batch(n); });
  refused("prefetch", [&] { (void)ps::prefetch(n); });
  refused("memory", [&] { (void)ps::memory(n); });
  refused("steps", [&] { (void)ps::steps(n); });
  refused("shuffle_buffer", [&] { (void)ps::shuffle_buffer(n); });
  refused("generated", [&] { (void)ps::generated(n, [](std::uint64_t i) { return i; }); });
  const auto plan = ps::from(first_ints(4)) | ps::batch(2);
  refused("epoch", [&] { (void)plan.epoch(n); });
  auto run = plan.open();
  refused("epoch", [&] { (void)run.epoch(n); });
  refused("epochs", [&] { (void)run.epochs(n); });
}

TEST_CASE("core/any_count: signed counts are used as they are") {
  const int rank = 1, world = 2, size = 2, one = 1;
  const auto plan = ps::from(first_ints(8)) | ps::skip(one) | ps::take(4L) | ps::repeat(one) |
                    ps::shard(rank, world) | ps::batch(size) | ps::workers(one);
  CHECK(values_of(plan) == std::vector<int>{3, 4});
}
