// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/stage/unbatch.hpp>

#include <penstock/codec/npy.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/map.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("stage/unbatch: ranges are split in order, with any number of workers") {
  std::vector<std::vector<int>> lists;
  std::vector<int> expected;
  for (int i = 0; i < 200; ++i) {
    lists.emplace_back(static_cast<std::size_t>(i % 7), i);
    expected.insert(expected.end(), lists.back().begin(), lists.back().end());
  }
  const auto plan = ps::from(lists) | ps::unbatch | ps::batch(16);
  for (const unsigned workers : {0u, 1u, 3u}) REQUIRE(values_of(plan, workers) == expected);
}

TEST_CASE("stage/unbatch: one sample may become very many") {
  const auto plan = ps::from(first_ints(3)) | ps::map([](int x) { return std::vector<int>(10'000, x); }) |
                    ps::unbatch | ps::batch(999);
  const auto all = values_of(plan, 2);
  REQUIRE(all.size() == 30'000);
  for (std::size_t i = 0; i < all.size(); ++i) REQUIRE(all[i] == static_cast<int>(i / 10'000));
}

TEST_CASE(
    "stage/unbatch: a record of equally long fields becomes a record per row; unequal ones are an error") {
  using table = ps::record<ps::field<"x", std::vector<int>>, ps::field<"y", std::vector<float>>>;
  std::vector<table> tables{table(std::vector{1, 2}, std::vector{0.5f, 1.5f}),
                            table(std::vector{3}, std::vector{2.5f})};
  for (auto&& b : (ps::from(tables) | ps::unbatch | ps::batch(3)).epoch(0)) {
    CHECK(ps::get<"x">(b)[2] == 3);
    CHECK(ps::get<"y">(b)[1] == 1.5f);
  }
  tables.push_back(table(std::vector{1}, std::vector<float>{}));
  CHECK_THAT(error_of([&] {
               (void)batches_of(ps::from(tables) | ps::unbatch |
                                ps::map([](const auto& r) { return ps::get<"x">(r); }) | ps::batch(3));
             }),
             contains("different numbers of rows"));
}

TEST_CASE("stage/unbatch: a small file cannot claim an arbitrary number of empty rows") {
  const auto file = [](std::uint64_t rows) {
    const auto bytes = ps::npy_bytes<std::uint8_t>(ps::extents(rows, 0), {});
    return std::vector{std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())};
  };
  const auto plan =
      ps::from(file(std::uint64_t{1} << 62)) | ps::decode<ps::npy<std::uint8_t>> | ps::unbatch | ps::batch(4);
  CHECK_THAT(error_of([&] { (void)batches_of(plan); }),
             contains("(4611686018427387904, 0) has no elements, and more than 65536 rows"));
  std::size_t rows = 0;
  for (auto&& b :
       (ps::from(file(3)) | ps::decode<ps::npy<std::uint8_t>> | ps::unbatch | ps::batch(4)).epoch(0))
    rows += b.size();
  CHECK(rows == 3);
}

TEST_CASE("stage/unbatch: each row draws random numbers of its own") {
  const auto plan =
      ps::from(first_ints(2)) | ps::map([](int) { return std::vector<int>(50); }) | ps::unbatch |
      ps::map([](int, ps::rng& r) { return static_cast<int>(r.below(1'000'000'000)); }) | ps::batch(10);
  const auto all = values_of(plan, 0);
  CHECK(std::set<int>(all.begin(), all.end()).size() == 100);
  CHECK(values_of(plan, 3) == all);
}
