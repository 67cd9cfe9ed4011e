// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/sequence/join_fields.hpp>

#include <penstock/order/shuffle.hpp>
#include <penstock/sequence/mask_tokens.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include "support/catch.hpp"
#include "support/token_documents.hpp"

#include <memory>

namespace join_fields_test {

namespace ps = penstock;
using namespace penstock_test;

namespace {

using tokens = std::vector<std::int32_t>;
using pair_sample =
    ps::record<ps::field<"prompt", tokens>, ps::field<"id", std::uint64_t>, ps::field<"answer", tokens>>;

pair_sample some_pair(std::uint64_t i) { return pair_sample(tokens(i % 5, 7), i, tokens(i % 4, 8)); }

/// An array that is computed where it is to be, and nowhere else.
struct only_in_place {
  using unfinished = void;
  using value_type = std::int32_t;
  std::uint64_t length;
  std::int32_t first;
  [[nodiscard]] ps::extents shape() const { return ps::extents(length); }
  void write_to(const ps::destination<std::int32_t>& into) const {
    into.fill_from([next = first]() mutable { return next++; });
  }
  [[nodiscard]] ps::tensor_view<const std::int32_t> finish() const {
    FAIL("a part was finished before it had a place");
    return {};
  }
};

}  // namespace

TEST_CASE("sequence/join_fields: parts stand one behind the other, and the mask says which is the answer") {
  called_operation joins(ps::join_fields<"tokens", "prompt", "answer">());
  const pair_sample sample(tokens{1, 2, 3}, 9, tokens{4, 5});
  const auto joined = joins(sample);
  STATIC_REQUIRE(ps::array_expression<decltype(ps::get<"tokens">(joined))>);
  STATIC_REQUIRE(std::remove_cvref_t<decltype(joined)>::size == 3);
  CHECK(ps::get<"id">(joined) == 9);
  CHECK(tokens_of(ps::get<"tokens">(joined)) == token_list{1, 2, 3, 4, 5});
  CHECK(tokens_of(ps::get<"loss_mask">(joined)) == token_list{0, 0, 0, 1, 1});
  // one that is about to go is moved
  called_operation moves(ps::join_fields<"tokens", "prompt", "answer">());
  pair_sample going(sample);
  const auto kept = moves(std::move(going));
  CHECK(ps::get<"answer">(going).empty());
  CHECK(tokens_of(ps::get<"tokens">(kept)) == token_list{1, 2, 3, 4, 5});
}

TEST_CASE("sequence/join_fields: tokens before and behind, and fields that are trained on") {
  using sample =
      ps::record<ps::field<"a", std::vector<std::uint16_t>>, ps::field<"tokens", std::vector<std::uint16_t>>,
                 ps::field<"c", std::vector<std::uint16_t>>>;
  const sample all(std::vector<std::uint16_t>{10, 11}, std::vector<std::uint16_t>{},
                   std::vector<std::uint16_t>{12});
  // A part's name may be that of the result.
  called_operation joins(
      ps::join_fields<"tokens", "c", "tokens", "a">(ps::train_on<"c">, {.begin_token = 1, .end_token = 2}));
  const auto joined = joins(all);
  CHECK(tokens_of(ps::get<"tokens">(joined)) == token_list{1, 12, 10, 11, 2});
  CHECK(tokens_of(ps::get<"loss_mask">(joined)) == token_list{0, 1, 0, 0, 0});
  called_operation both(ps::join_fields<"all", "a", "tokens", "c">(ps::train_on<"a", "c">, {.end_token = 2}));
  const auto trained = both(all);
  CHECK(tokens_of(ps::get<"all">(trained)) == token_list{10, 11, 12, 2});
  CHECK(tokens_of(ps::get<"loss_mask">(trained)) == token_list{1, 1, 1, 1});
  called_operation none(ps::join_fields<"all", "a">(ps::train_on<>));
  CHECK(tokens_of(ps::get<"loss_mask">(none(all))) == token_list{0, 0});
}

TEST_CASE("sequence/join_fields: nothing in nothing") {
  called_operation joins(ps::join_fields<"tokens", "prompt", "answer">());
  const auto joined = joins(pair_sample(tokens{}, 1, tokens{}));
  CHECK(ps::get<"tokens">(joined).shape() == ps::extents(0));
  CHECK(tokens_of(ps::get<"tokens">(joined)).empty());
  CHECK(tokens_of(ps::get<"loss_mask">(joined)).empty());
}

TEST_CASE("sequence/join_fields: parts that are not computed yet write themselves to their places") {
  using sample = ps::record<ps::field<"prompt", only_in_place>, ps::field<"answer", only_in_place>>;
  called_operation joins(ps::join_fields<"tokens", "prompt", "answer">({.begin_token = 1}));
  const sample parts(only_in_place{3, 20}, only_in_place{2, 30});
  const auto joined = joins(parts);
  CHECK(tokens_of(ps::get<"tokens">(joined)) == token_list{1, 20, 21, 22, 30, 31});
  // every other number of a larger array
  std::vector<std::int32_t> room(12, -1);
  std::vector<std::uint8_t> mask(12, 9);
  const ps::element_strides strides{2};
  ps::get<"tokens">(joined).write_to(ps::destination<std::int32_t>(room.data(), ps::extents(6), strides));
  ps::get<"loss_mask">(joined).write_to(ps::destination<std::uint8_t>(mask.data(), ps::extents(6), strides));
  CHECK(room == tokens{1, -1, 20, -1, 21, -1, 22, -1, 30, -1, 31, -1});
  CHECK(mask == std::vector<std::uint8_t>{0, 9, 0, 9, 0, 9, 0, 9, 1, 9, 1, 9});

  const auto plan = ps::generated(20,
                                  [](std::uint64_t i) {
                                    return sample(only_in_place{i % 3, 20}, only_in_place{i % 4, 30});
                                  }) |
                    ps::map(ps::join_fields<"tokens", "prompt", "answer">()) | ps::batch(5, ps::ragged);
  std::uint64_t row = 0;
  for (auto&& batch : plan.epoch(0))
    for (std::size_t k = 0; k < batch.size(); ++k, ++row) {
      token_list expected = tokens_of(counted_tokens(row % 3, 20));
      for (const auto token : counted_tokens(row % 4, 30)) expected.push_back(token);
      CHECK(tokens_of(ps::get<"tokens">(batch)[k]) == expected);
    }
  CHECK(row == 20);
}

TEST_CASE("sequence/join_fields: in a plan, on any number of workers and after a restart") {
  const auto plan = ps::generated(60, some_pair) | ps::shuffle(ps::seed(3)) |
                    ps::map(ps::join_fields<"tokens", "prompt", "answer">({.end_token = 2})) |
                    ps::batch(8, ps::ragged, ps::collate<"id">(ps::stack)) | ps::seed(11);
  check_same_on_any_workers(
      plan, [](const auto& batch) { return text_of(ps::get<"tokens">(batch), ps::get<"loss_mask">(batch)); });
  std::size_t seen = 0;
  for (auto&& batch : plan.epoch(0))
    for (std::size_t row = 0; row < batch.size(); ++row, ++seen) {
      const std::uint64_t i = ps::get<"id">(batch)[row];
      token_list expected(i % 5, 7), mask(i % 5, 0);
      expected.insert(expected.end(), i % 4, 8);
      expected.push_back(2);
      mask.insert(mask.end(), i % 4 + 1, 1);
      CHECK(tokens_of(ps::get<"tokens">(batch)[row]) == expected);
      CHECK(tokens_of(ps::get<"loss_mask">(batch)[row]) == mask);
    }
  CHECK(seen == 60);
}

TEST_CASE("sequence/join_fields: padded, and as rows without a batch") {
  const auto joined = ps::generated(6, some_pair) | ps::map(ps::join_fields<"tokens", "prompt", "answer">());
  for (auto&& batch : (joined | ps::batch(6, ps::pad_to_longest, ps::collate<"id">(ps::stack))).epoch(0)) {
    CHECK(ps::get<"tokens">(batch).shape()[1] == 6);
    CHECK(ps::get<"tokens">(batch).lengths()[3] == 6);
  }
  std::uint64_t i = 0;
  for (auto&& row : joined.epoch(0)) {
    CHECK(ps::get<"tokens">(row).shape()[0] == i % 5 + i % 4);
    ++i;
  }
  CHECK(i == 6);
}

TEST_CASE("sequence/join_fields: other operations go on with it, and values that cannot be copied pass") {
  using sample = ps::record<ps::field<"prompt", tokens>, ps::field<"answer", tokens>,
                            ps::field<"other", std::unique_ptr<int>>>;
  called_operation joins(ps::join_fields<"tokens", "prompt", "answer">());
  called_operation masks(ps::mask_tokens({.rate = 1, .mask_token = 9, .random = 0, .keep = 0}));
  const auto made = masks(joins(sample(tokens{1, 2}, tokens{3}, std::make_unique<int>(5))));
  CHECK(*ps::get<"other">(made) == 5);
  CHECK(tokens_of(ps::get<"tokens">(made)) == token_list{9, 9, 9});
  CHECK(tokens_of(ps::get<"labels">(made)) == token_list{1, 2, 3});
  CHECK(tokens_of(ps::get<"loss_mask">(made)) == token_list{0, 0, 1});
}

TEST_CASE("sequence/join_fields: what is wrong with parts and tokens is said") {
  using sample = ps::record<ps::field<"a", ps::tensor_view<const std::int16_t>>>;
  const std::vector<std::int16_t> numbers(6);
  called_operation joins(ps::join_fields<"tokens", "a">());
  CHECK_THROWS_WITH(joins(sample(ps::tensor_view<const std::int16_t>(numbers.data(), ps::extents(2, 3)))),
                    Catch::Contains("join_fields works on sequences") && Catch::Contains("(2, 3)"));
  called_operation ends(ps::join_fields<"tokens", "a">({.end_token = 70'000}));
  CHECK_THROWS_WITH(ends(sample(ps::tensor_view<const std::int16_t>(numbers.data(), ps::extents(6)))),
                    Catch::Contains(".end_token = 70000 does not fit into tokens of 16 bits"));
}

}  // namespace join_fields_test
