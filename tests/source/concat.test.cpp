// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/order/repeat.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/take.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/concat.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/engine_test.hpp"
#include "support/resume_test.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ps = penstock;

namespace concat_test {

using engine_test::numbers;

auto numbered(std::uint64_t size, std::uint64_t source, numbers starts = {}) {
  return ps::generated(
      size, [source](std::uint64_t i) { return source * 1'000'000 + i; }, std::move(starts),
      ps::seed(source));
}

TEST_CASE("source/concat: one source after another") {
  const auto joined =
      ps::concat(numbered(3, 1), numbered(0, 2), numbered(2, 3), numbered(1, 4) | ps::repeat(2));
  CHECK(joined.size() == 7);
  CHECK(penstock_test::values_of(joined | ps::batch(2, ps::tail::keep), 2) ==
        numbers{1'000'000, 1'000'001, 1'000'002, 3'000'000, 3'000'001, 4'000'000, 4'000'000});
  CHECK(joined.describe() == "concat(generated(3), generated(0), generated(2), generated(1) | repeat(2))");
  CHECK(ps::concat(numbered(0, 1)).size() == 0);
  CHECK(penstock_test::values_of(ps::concat(numbered(0, 1)) | ps::batch(2)).empty());
}

TEST_CASE("source/concat: each source has its own order in each epoch") {
  const auto a = numbered(50, 1) | ps::shuffle(ps::seed(1)), b = numbered(70, 2) | ps::shuffle(ps::seed(2));
  const auto run_of = [](const auto& plan) { return engine_test::read_plan(plan | ps::batch(10), 3); };
  const auto joined = run_of(ps::concat(a, b)), first = run_of(a), second = run_of(b);
  for (std::size_t epoch = 0; epoch < 3; ++epoch) {
    engine_test::batches wanted = first[epoch];
    wanted.insert(wanted.end(), second[epoch].begin(), second[epoch].end());
    CHECK(joined[epoch] == wanted);
  }
}

TEST_CASE("source/concat: shards are joined in order, and a source without any is one shard") {
  const auto joined = ps::concat(numbered(10, 1, {0, 4, 10}), numbered(5, 2), numbered(6, 3, {0, 1, 6}));
  CHECK(*joined.starts() == numbers{0, 4, 10, 15, 16, 21});
  CHECK(*ps::concat(numbered(10, 1, {0, 4, 10}) | ps::shuffle(ps::seed(1)), numbered(5, 2)).starts() ==
        numbers{0, 10, 15});
  // so a windowed shuffle keeps the samples of a shard together
  const auto windowed = penstock_test::values_of(joined | ps::shuffle(ps::seed(5), ps::window(1)) |
                                                 ps::batch(3, ps::tail::keep));
  REQUIRE(windowed.size() == 21);
  std::size_t seams = 0;
  for (std::size_t i = 1; i < windowed.size(); ++i)
    seams += windowed[i] / 1'000'000 != windowed[i - 1] / 1'000'000;
  CHECK(seams <= 4);
}

TEST_CASE("source/concat: any number of workers, any stop, any world") {
  const auto joined = ps::concat(numbered(130, 1) | ps::shuffle(ps::seed(1)) | ps::map(engine_test::noisy),
                                 numbered(90, 2), numbered(20, 3)) |
                      ps::shuffle(ps::seed(4));
  const auto wanted = engine_test::read_plan(joined | ps::batch(8) | ps::workers(0), 2);
  engine_test::on_each_setting(joined | ps::map(engine_test::slowly{}) | ps::batch(8),
                               [&](const auto& one, const std::string& name) {
                                 INFO(name);
                                 CHECK(engine_test::read_plan(one, 2) == wanted);
                               });
  engine_test::check_all_stops(joined | ps::batch(8));
  const auto make = [&](std::uint64_t rank, std::uint64_t world, std::uint64_t size) {
    return joined | ps::shard(rank, world) | ps::batch(size);
  };
  engine_test::check_elastic(make, 24, 2, 3, 3);
  engine_test::check_elastic(make, 24, 8, 1, 4);
}

TEST_CASE("source/concat: a list of sources, and keys of the sources") {
  std::vector<decltype(numbered(1, 1))> shards;
  for (std::uint64_t k = 0; k < 9; ++k) shards.push_back(numbered(k, k));
  const auto joined = ps::concat(shards);
  CHECK(joined.size() == 36);
  numbers wanted;
  for (std::uint64_t k = 0; k < 9; ++k)
    for (std::uint64_t i = 0; i < k; ++i) wanted.push_back(k * 1'000'000 + i);
  CHECK(penstock_test::values_of(joined | ps::batch(4, ps::tail::keep), 2) == wanted);
  auto run = (joined | ps::batch(36)).open();
  auto b = run.next();
  REQUIRE(b.value.has_value());
  const auto keys = b.value->keys();
  for (std::size_t i = 0; i < keys.size(); ++i) CHECK(keys[i] == std::to_string(wanted[i] % 1'000'000));
}

TEST_CASE("source/concat: its fingerprints cover data and orders") {
  const auto one = ps::concat(numbered(5, 1), numbered(6, 2) | ps::shuffle(ps::seed(1)));
  CHECK(one.fingerprint() ==
        ps::concat(numbered(5, 1), numbered(6, 2) | ps::shuffle(ps::seed(2))).fingerprint());
  CHECK(one.sequence_fingerprint() !=
        ps::concat(numbered(5, 1), numbered(6, 2) | ps::shuffle(ps::seed(2))).sequence_fingerprint());
  const auto noise = ps::map([](std::uint64_t x, ps::rng& random) { return x + random.below(2); });
  CHECK(one.random_fingerprint() == 0);
  CHECK(ps::concat(numbered(5, 1), numbered(6, 2) | noise).random_fingerprint() !=
        ps::concat(numbered(5, 1) | noise, numbered(6, 2)).random_fingerprint());
  CHECK(one.fingerprint() !=
        ps::concat(numbered(6, 2), numbered(5, 1) | ps::shuffle(ps::seed(1))).fingerprint());
}

TEST_CASE("source/concat: errors are one sentence") {
  CHECK_THROWS_WITH(ps::concat(numbered(5, 1) | ps::repeat(), numbered(5, 2)),
                    penstock_test::contains("source 0 of concat is endless"));
  const auto broken = ps::map([](std::uint64_t x) {
    if (x == 2'000'003) throw ps::error(ps::errc::format, "the sample is broken");
    return x;
  });
  CHECK_THAT(
      penstock_test::error_of([&] {
        static_cast<void>(
            penstock_test::values_of(ps::concat(numbered(5, 1), numbered(5, 2) | broken) | ps::batch(5)));
      }),
      penstock_test::contains("the sample is broken, in source 1 of concat (generated(5)) [position 0:8]"));
}

}  // namespace concat_test
