// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/opens_as_plan.hpp>

#include "support/catch.hpp"

#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/concat.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/source/idx.hpp>
#include <penstock/source/lines.hpp>
#include <penstock/source/mix.hpp>
#include <penstock/source/npy_rows.hpp>
#include <penstock/source/synthetic.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/source/webdataset_stream.hpp>
#include <penstock/source/zip.hpp>

#include <concepts>
#include <cstdint>
#include <forward_list>
#include <ranges>
#include <string>
#include <vector>

namespace ps = penstock;

namespace {

template <class Source>
concept opens = std::derived_from<Source, ps::opens_as_plan<Source>>;
static_assert(opens<ps::webdataset<ps::mapped_file>> && opens<decltype(ps::webdataset_stream({"a"}))> &&
                  opens<ps::idx_source<std::uint8_t>> && opens<ps::synthetic_source> &&
                  opens<decltype(ps::lines("a"))> && opens<decltype(ps::npy_rows<float>("a"))>,
              "every source of the library opens");

const auto squares = ps::generated(5, [](std::uint64_t i) { return static_cast<int>(i * i); });

template <class Source>
std::vector<int> looped(const Source& source) {
  std::vector<int> all;
  for (const int x : source) all.push_back(x);
  return all;
}

}  // namespace

TEST_CASE("core/opens_as_plan: a loop over a source goes through its samples, each time from the beginning") {
  CHECK(looped(squares) == std::vector<int>{0, 1, 4, 9, 16});
  CHECK(looped(squares) == std::vector<int>{0, 1, 4, 9, 16});
  CHECK(looped(ps::from(std::vector<int>{})).empty());
  CHECK(looped(ps::from(std::forward_list<int>{3, 2, 1})) == std::vector<int>{3, 2, 1});
  CHECK(looped(ps::concat(squares, ps::from({7, 8}))) == std::vector<int>{0, 1, 4, 9, 16, 7, 8});

  std::string joined;
  for (auto&& word : ps::from(std::vector<std::string>{"one ", "two ", "three"})) joined += word;
  CHECK(joined == "one two three");
  for (auto&& pair : ps::zip<"number", "word">(squares, ps::from(std::vector<std::string>(5, "x"))))
    CHECK(ps::get<"word">(pair) == "x");
}

TEST_CASE("core/opens_as_plan: a source opens, and gives its epochs, as the plan of it alone") {
  const auto mixed =
      ps::mix(ps::weights{1, 1}, ps::from({1, 2, 3, 4, 5, 6, 7, 8}) | ps::shuffle(ps::seed(7)), squares);
  const auto plan = ps::plan(mixed);
  std::vector<int> expected, epoch, run;
  for (const int x : plan.epoch(2)) expected.push_back(x);
  for (const int x : mixed.epoch(2)) epoch.push_back(x);
  auto opened = mixed.open();
  for (const int x : opened.epoch(2)) run.push_back(x);
  CHECK(epoch == expected);
  CHECK(run == expected);
  CHECK_FALSE(expected.empty());
}

TEST_CASE("core/opens_as_plan: a source is no range, so that | takes stages alone") {
  STATIC_REQUIRE_FALSE(std::ranges::range<std::remove_const_t<decltype(squares)>>);
  STATIC_REQUIRE_FALSE(ps::can_connect<decltype(squares), decltype(std::views::take(2))>);
}
