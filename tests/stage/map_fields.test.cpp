// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/stage/map_fields.hpp>

#include <penstock/core/record.hpp>
#include <penstock/inspection/describe.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"
#include "support/resume_test.hpp"

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

namespace ps = penstock;

namespace {

using sample = ps::record<ps::field<"a", std::uint64_t>, ps::field<"b", std::uint64_t>,
                          ps::field<"rest", std::uint64_t>>;
const auto pairs = ps::generated(40, [](std::uint64_t i) { return sample(i, 1000 + i, i); });

const auto add = [](std::uint64_t x, ps::rng& random) { return x + 10'000 * (1 + random.below(50)); };
const auto doubled = [](std::uint64_t x) { return x * 2; };

/// Draws for whole numbers only.
struct noisy {
  std::int64_t operator()(std::int64_t x, ps::rng& random) const {
    return x + static_cast<std::int64_t>(random.below(1000)) * 100;
  }
  template <std::same_as<double> T>
  T operator()(T x) const {
    return x;
  }
};

template <class Plan>
auto rows_of(const Plan& plan) {
  std::vector<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>> rows;
  for (auto&& b : plan.epoch(0))
    for (std::size_t i = 0; i < b.size(); ++i)
      rows.emplace_back(ps::get<"a">(b)[i], ps::get<"b">(b)[i], ps::get<"rest">(b)[i]);
  return rows;
}

}  // namespace

TEST_CASE("stage/map_fields: all fields have the same random numbers, and others are untouched") {
  const auto joint = pairs | ps::map<"b", "a">(doubled, add, add, ps::key("k"));
  const auto apart =
      pairs | ps::map<"a">(doubled, add, add, ps::key("k")) | ps::map<"b">(doubled, add, add, ps::key("k"));
  const auto expected = rows_of(apart | ps::batch(7));
  for (const auto& [a, b, rest] : expected) {
    CHECK(b - a == 2000);
    CHECK((rest < 40 && a > 20'000));
  }
  for (const unsigned workers : {0u, 2u, 7u}) {
    CHECK(rows_of(joint | ps::batch(7) | ps::workers(workers)) == expected);
    CHECK(rows_of(joint | ps::shuffle(ps::seed(3)) | ps::batch(7) | ps::workers(workers)) ==
          rows_of(apart | ps::shuffle(ps::seed(3)) | ps::batch(7)));
  }
  // without a key it draws as a single field at its place does
  const auto unnamed = rows_of(pairs | ps::map<"a", "b">(add) | ps::batch(7));
  const auto alone = rows_of(pairs | ps::map<"a">(add) | ps::batch(7));
  for (std::size_t i = 0; i < 40; ++i) {
    CHECK(std::get<0>(unnamed[i]) == std::get<0>(alone[i]));
    CHECK(std::get<1>(unnamed[i]) - std::get<0>(unnamed[i]) == 1000);
  }
  CHECK_THAT(ps::describe(joint | ps::batch(2)), Catch::Contains("map<\"b\", \"a\">"));
}

TEST_CASE("stage/map_fields: fields of different types, and functions that draw for the first one only") {
  using mixed = ps::record<ps::field<"number", std::int64_t>, ps::field<"share", double>>;
  const auto hundreds = [](auto x, ps::rng& random) {
    return static_cast<decltype(x)>(x + static_cast<decltype(x)>(random.below(1000) * 1'000'000));
  };
  const auto plan = ps::generated(10,
                                  [](std::uint64_t i) {
                                    return mixed(static_cast<std::int64_t>(i), static_cast<double>(i) / 16);
                                  }) |
                    ps::map<"number", "share">(noisy{}, hundreds) | ps::batch(10);
  for (auto&& b : plan.epoch(0))
    for (std::size_t i = 0; i < b.size(); ++i)
      CHECK(std::floor(ps::get<"share">(b)[i] / 1'000'000) ==
            std::floor(static_cast<double>(ps::get<"number">(b)[i]) / 1'000'000));
}

TEST_CASE("stage/map_fields: a run that is restored has the same numbers") {
  const auto plan = pairs | ps::shuffle(ps::seed(2)) | ps::map<"a", "b">(add, add) |
                    ps::map([](const auto& s) { return ps::get<"a">(s) * 7 + ps::get<"b">(s); }) |
                    ps::batch(3);
  engine_test::check_all_stops(plan);
}
