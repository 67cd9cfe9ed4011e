// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/take.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/concat.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/source/zip.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/enumerate.hpp>
#include <penstock/stage/map.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/count_allocations.hpp"
#include "support/engine_test.hpp"
#include "support/resume_test.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace ps = penstock;

namespace zip_test {

using engine_test::numbers;

auto numbered(std::uint64_t size, std::uint64_t source) {
  return ps::generated(
      size, [source](std::uint64_t i) { return source * 1'000'000 + i; }, {0, size}, ps::seed(source));
}
constexpr auto sum = [](const auto& r) { return ps::get<"a">(r) * 3 + ps::get<"b">(r); };

TEST_CASE("source/zip: one position of all sources as one record") {
  const auto joined = ps::zip<"a", "b">(numbered(40, 1), numbered(40, 2));
  static_assert(std::is_same_v<decltype(joined)::element,
                               ps::record<ps::field<"a", std::uint64_t>, ps::field<"b", std::uint64_t>>>);
  std::uint64_t i = 0;
  for (auto&& b : (joined | ps::batch(10)).epoch(0)) {
    for (std::size_t row = 0; row < b.size(); ++row, ++i) {
      CHECK(ps::get<"a">(b)[row] == 1'000'000 + i);
      CHECK(ps::get<"b">(b)[row] == 2'000'000 + i);
    }
  }
  CHECK(i == 40);
  CHECK(joined.describe() == "zip(generated(40), generated(40))");
}

TEST_CASE("source/zip: records are joined by their fields") {
  const auto left = ps::zip<"a", "b">(numbered(9, 1), numbered(9, 2));
  const auto right = ps::zip<"c">(numbered(9, 3));
  const auto joined = ps::zip(left, right, numbered(9, 4) | ps::enumerate) | ps::workers(0);
  std::uint64_t i = 0;
  for (const auto& [a, b, c, index, value] : joined) {
    CHECK(a == 1'000'000 + i);
    CHECK(b == 2'000'000 + i);
    CHECK(c == 3'000'000 + i);
    CHECK(index == i);
    CHECK(value == 4'000'000 + i++);
  }
  CHECK(i == 9);
}

TEST_CASE("source/zip: texts and vectors are views in the record, and nothing is allocated") {
  std::vector<std::string> texts;
  std::vector<std::vector<float>> lists;
  for (int i = 0; i < 30; ++i) {
    texts.push_back("a text that is longer than fits in a string itself, " + std::to_string(i));
    lists.push_back(std::vector<float>(static_cast<std::size_t>(i), static_cast<float>(i)));
  }
  const auto joined = ps::zip<"text", "list">(ps::from(texts), ps::from(lists));
  static_assert(
      std::is_same_v<decltype(joined)::element, ps::record<ps::field<"text", std::string_view>,
                                                           ps::field<"list", std::span<const float>>>>);
  const auto reader = joined.connect();
  decltype(joined)::reader::worker worker;
  std::size_t letters = 0, wanted = 0;
  for (const auto& t : texts) wanted += t.size();
  CHECK(penstock_test::allocations_of([&] {
          for (std::uint64_t i = 0; i < 30; ++i) {
            reader.evaluate({0, i}, worker, [&](const auto& r) {
              letters += ps::get<"text">(r).size();
              letters += ps::get<"list">(r).size() - static_cast<std::size_t>(i);
            });
          }
        }) == 0);
  CHECK(letters == wanted);
  for (auto&& b : (joined | ps::batch(5, ps::ragged)).epoch(0)) CHECK(b.size() == 5);
  std::size_t rows = 0;
  for (auto&& r : (joined | ps::workers(1)).epoch(0))
    CHECK(std::string_view(ps::get<"text">(r)) == texts[rows++]);
  CHECK(rows == 30);
}

TEST_CASE("source/zip: different sizes are an error, except with shortest") {
  CHECK_THROWS_WITH(
      (ps::zip<"a", "b">(numbered(5, 1), numbered(6, 2))),
      penstock_test::contains("source 1 of zip has 6 samples and source 0 has 5; write zip(..., shortest)"));
  const auto cut = ps::zip<"a", "b">(numbered(5, 1), numbered(6, 2), ps::shortest);
  CHECK(cut.size() == 5);
  REQUIRE(cut.starts() != nullptr);
  CHECK(cut.starts()->back() == 5);
  CHECK(ps::zip<"a", "b">(numbered(7, 1), ps::from(numbers{1, 2}), ps::shortest).starts() == nullptr);
}

TEST_CASE("source/zip: any number of workers, any stop, any world") {
  const auto joined =
      ps::zip<"a", "b">(numbered(240, 1) | ps::shuffle(ps::seed(1)) | ps::map(engine_test::noisy),
                        ps::concat(numbered(100, 2), numbered(140, 3)) | ps::shuffle(ps::seed(2))) |
      ps::shuffle(ps::seed(3)) | ps::map(sum);
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

TEST_CASE("source/zip: an error says which source it came from, the key is the first source's") {
  const auto broken = ps::map([](std::uint64_t x) {
    if (x == 2'000'003) throw ps::error(ps::errc::format, "the sample is broken");
    return x;
  });
  const auto joined = ps::zip<"a", "b">(numbered(5, 1), numbered(5, 2) | broken);
  const std::string said = penstock_test::error_of([&] {
    for (auto&& b : (joined | ps::batch(5)).epoch(0)) CHECK(b.size() == 0);
  });
  CHECK_THAT(said, penstock_test::contains(
                       "the sample is broken, in source 1 of zip (generated(5)) [position 0:3]"));
  auto run =
      (ps::zip<"a", "b">(numbered(5, 1) | ps::shuffle(ps::seed(1)), numbered(5, 2)) | ps::batch(5)).open();
  for (auto&& b : run.epoch(1)) {
    const auto keys = b.keys();
    for (std::size_t i = 0; i < 5; ++i) CHECK(keys[i] == std::to_string(ps::get<"a">(b)[i] % 1'000'000));
  }
}

}  // namespace zip_test
