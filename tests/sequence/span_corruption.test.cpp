// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/sequence/span_corruption.hpp>

#include <penstock/order/shuffle.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include "support/catch.hpp"
#include "support/token_documents.hpp"

#include <algorithm>
#include <map>

namespace span_corruption_test {

namespace ps = penstock;
using namespace penstock_test;

namespace {

constexpr std::int64_t first_sentinel = 32'099;

bool is_sentinel(std::int64_t token) { return token <= first_sentinel && token > first_sentinel - 100; }

/// Puts the spans of the targets back into the inputs, both without their ends.
token_list restored(const token_list& inputs, const token_list& targets) {
  token_list all;
  std::int64_t next = first_sentinel;
  for (const std::int64_t token : inputs) {
    if (!is_sentinel(token)) {
      all.push_back(token);
      continue;
    }
    REQUIRE(token == next--);
    const auto at = std::find(targets.begin(), targets.end(), token);
    REQUIRE(at != targets.end());
    all.insert(all.end(), at + 1, std::find_if(at + 1, targets.end(), is_sentinel));
  }
  return all;
}
token_list without_end(token_list tokens) {
  REQUIRE(!tokens.empty());
  REQUIRE(tokens.back() == 1);
  tokens.pop_back();
  return tokens;
}

template <class T>
void check_type() {
  called_operation corrupts(ps::span_corruption({.sentinel = 99, .sentinels = 50}));
  const auto made = corrupts(counted_tokens<T>(3, 120));
  STATIC_REQUIRE(std::is_same_v<std::remove_cvref_t<decltype(ps::get<"inputs">(made))>, std::span<const T>>);
  STATIC_REQUIRE(std::is_same_v<std::remove_cvref_t<decltype(ps::get<"targets">(made))>, std::span<const T>>);
  CHECK(tokens_of(ps::get<"inputs">(made)) == token_list{120, 121, 99, 1});
  CHECK(tokens_of(ps::get<"targets">(made)) == token_list{99, 122, 1});
}

}  // namespace

TEST_CASE("sequence/span_corruption: lengths of T5") {
  // What T5's compute_input_and_target_lengths returns.
  struct known {
    std::uint64_t inputs;
    double rate, mean;
    std::uint64_t tokens, targets;
  };
  for (const known& each :
       {known{512, 0.15, 3, 568, 114}, known{128, 0.15, 3, 141, 29}, known{1024, 0.15, 3, 1137, 229},
        known{64, 0.15, 3, 70, 14}, known{512, 0.5, 3, 766, 512}, known{511, 0.5, 3, 765, 510},
        known{512, 0.5, 64, 1006, 512}, known{513, 0.5, 64, 1008, 513}, known{512, 0.15, 32, 598, 94},
        known{114, 0.3, 8, 153, 53}, known{100, 0.5, 2, 132, 100}, known{101, 0.5, 2, 133, 100}}) {
    INFO(each.inputs << ' ' << each.rate << ' ' << each.mean);
    const auto lengths =
        ps::compute_input_and_target_lengths(each.inputs, {.rate = each.rate, .mean_length = each.mean});
    CHECK(lengths.tokens == each.tokens);
    CHECK(lengths.targets == each.targets);
    CHECK(lengths.inputs <= each.inputs);
    CHECK(lengths ==
          ps::span_corruption({.rate = each.rate, .mean_length = each.mean}).lengths(lengths.tokens));
  }
  CHECK(ps::compute_input_and_target_lengths(2).tokens == 1);
  CHECK_THROWS_WITH(ps::compute_input_and_target_lengths(1),
                    Catch::Contains("no sample has inputs of 1 tokens"));
}

TEST_CASE("sequence/span_corruption: the spans fit back into the inputs, and lengths are as they are told") {
  const auto operation = ps::span_corruption();
  called_operation corrupts(operation);
  for (std::size_t n = 2; n < 600; n += 1 + n / 20)
    for (std::uint64_t i = 0; i < 20; ++i) {
      INFO(n << " tokens, sample " << i);
      const auto tokens = counted_tokens(n, 100);
      const auto made = corrupts(tokens, i);
      const auto lengths = operation.lengths(n);
      REQUIRE(ps::get<"inputs">(made).size() == lengths.inputs);
      REQUIRE(ps::get<"targets">(made).size() == lengths.targets);
      const token_list inputs = without_end(tokens_of(ps::get<"inputs">(made)));
      const token_list targets = without_end(tokens_of(ps::get<"targets">(made)));
      REQUIRE(restored(inputs, targets) == tokens_of(tokens));
      // what is left comes first, and no span is empty
      REQUIRE(inputs.front() == 100);
      REQUIRE(is_sentinel(inputs.back()));
      for (std::size_t k = 1; k < inputs.size(); ++k)
        REQUIRE(!(is_sentinel(inputs[k]) && is_sentinel(inputs[k - 1])));
      for (std::size_t k = 1; k < targets.size(); ++k)
        REQUIRE(!(is_sentinel(targets[k]) && is_sentinel(targets[k - 1])));
    }
}

TEST_CASE("sequence/span_corruption: tokens of every type") {
  check_type<std::uint8_t>();
  check_type<std::uint16_t>();
  check_type<std::uint32_t>();
  check_type<std::int16_t>();
  check_type<std::int32_t>();
  check_type<std::int64_t>();
}

TEST_CASE("sequence/span_corruption: each way to cut is as likely as any other") {
  // 8 tokens: 4 are taken out in 2 spans, so that each side is cut at one of 3 places.
  called_operation corrupts(ps::span_corruption({.rate = 0.5, .mean_length = 2}));
  const auto tokens = counted_tokens(8, 100);
  std::map<token_list, int> found;
  constexpr int draws = 100'000;
  for (std::uint64_t i = 0; i < draws; ++i) ++found[tokens_of(ps::get<"targets">(corrupts(tokens, i)))];
  CHECK(found.size() == 9);
  for (const auto& [targets, times] : found) CHECK(times == Approx(draws / 9.0).margin(500));

  // Of 100 tokens 15 are taken out, in 5 spans: choices of 4 of 14 places, each of which is cut equally
  // often.
  called_operation many(ps::span_corruption());
  std::map<std::size_t, int> first_length;
  for (std::uint64_t i = 0; i < draws; ++i) {
    const token_list targets = tokens_of(ps::get<"targets">(many(counted_tokens(100, 100), i)));
    ++first_length[static_cast<std::size_t>(std::find_if(targets.begin() + 1, targets.end(), is_sentinel) -
                                            targets.begin() - 1)];
  }
  // The first part has k tokens in C(14 - k, 3) of C(14, 4) = 1001 choices.
  CHECK(first_length[1] == Approx(draws * 286 / 1001.0).margin(715));
  CHECK(first_length[2] == Approx(draws * 220 / 1001.0).margin(655));
  CHECK(first_length[11] == Approx(draws * 1 / 1001.0).margin(50));
  CHECK(first_length.rbegin()->first == 11);
}

TEST_CASE("sequence/span_corruption: documents of no token and of one, and no end") {
  called_operation corrupts(ps::span_corruption());
  const auto none = corrupts(std::vector<std::int32_t>{});
  CHECK(tokens_of(ps::get<"inputs">(none)) == token_list{1});
  CHECK(tokens_of(ps::get<"targets">(none)) == token_list{1});
  const auto one = corrupts(std::vector<std::int32_t>{7});
  CHECK(tokens_of(ps::get<"inputs">(one)) == token_list{7, 1});
  CHECK(tokens_of(ps::get<"targets">(one)) == token_list{1});
  called_operation endless(ps::span_corruption({.end_token = -1}));
  const auto two = endless(std::vector<std::int32_t>{7, 8});
  CHECK(tokens_of(ps::get<"inputs">(two)) == token_list{7, first_sentinel});
  CHECK(tokens_of(ps::get<"targets">(two)) == token_list{first_sentinel, 8});
  CHECK(ps::get<"inputs">(endless(std::vector<std::int32_t>{})).empty());
}

TEST_CASE("sequence/span_corruption: fixed values, so that a run can go on with a later version") {
  // From a model in Python of Philox, Floyd's algorithm and this header.
  called_operation corrupts(
      ps::span_corruption({.rate = 0.4, .mean_length = 2, .sentinel = 99, .end_token = 0}), 42);
  const auto made = corrupts(counted_tokens(20, 1), 7);
  CHECK(tokens_of(ps::get<"inputs">(made)) ==
        token_list{1, 2, 3, 4, 5, 99, 9, 98, 13, 14, 15, 16, 17, 97, 19, 96, 0});
  CHECK(tokens_of(ps::get<"targets">(made)) == token_list{99, 6, 7, 8, 98, 10, 11, 12, 97, 18, 96, 20, 0});
}

TEST_CASE("sequence/span_corruption: in a plan, on any number of workers and after a restart") {
  const auto plan = some_documents(60) | ps::shuffle(ps::seed(3)) | ps::map(ps::span_corruption<"tokens">()) |
                    ps::batch(8, ps::ragged, ps::collate<"id">(ps::stack)) | ps::seed(11);
  check_same_on_any_workers(
      plan, [](const auto& batch) { return text_of(ps::get<"inputs">(batch), ps::get<"targets">(batch)); });
  std::size_t seen = 0;
  for (auto&& batch : plan.epoch(0))
    for (std::size_t row = 0; row < batch.size(); ++row, ++seen)
      CHECK(restored(without_end(tokens_of(ps::get<"inputs">(batch)[row])),
                     without_end(tokens_of(ps::get<"targets">(batch)[row]))) ==
            tokens_of(counted_tokens(ps::mix64(ps::get<"id">(batch)[row]) % 41, 100)));
  CHECK(seen == 60);
}

TEST_CASE("sequence/span_corruption: inputs stay in the place of the tokens, under a name of their own") {
  using sample = ps::record<ps::field<"text", std::vector<std::int32_t>>, ps::field<"id", int>>;
  called_operation corrupts(ps::span_corruption<"text", "text", "labels">());
  auto made = corrupts(sample(counted_tokens(30, 100), 5));
  STATIC_REQUIRE(
      std::is_same_v<std::remove_cvref_t<decltype(made)>::field_at<0>::name_type, ps::name_of<"text">>);
  STATIC_REQUIRE(
      std::is_same_v<std::remove_cvref_t<decltype(made)>::field_at<2>::name_type, ps::name_of<"labels">>);
  CHECK(ps::get<"id">(made) == 5);
}

TEST_CASE("sequence/span_corruption: what is wrong with options and tokens is said") {
  using Catch::Contains;
  CHECK_THROWS_WITH(ps::span_corruption({.rate = 0}), Contains("rate is a share"));
  CHECK_THROWS_WITH(ps::span_corruption({.rate = 1}), Contains("rate is a share"));
  CHECK_THROWS_WITH(ps::span_corruption({.mean_length = 0.5}), Contains("mean_length is at least one"));
  CHECK_THROWS_WITH(ps::span_corruption({.sentinels = 0}), Contains("at least one sentinel"));
  CHECK_THROWS_WITH(ps::span_corruption({.sentinel = 98, .sentinels = 100}),
                    Contains("100 sentinels from 98 on, -1 apart, are no tokens"));
  called_operation corrupts(ps::span_corruption());
  CHECK_THROWS_WITH(corrupts(std::vector<std::int32_t>(4096, 7)),
                    Contains("takes 205 spans out of a sample of 4096 tokens, and there are 100 sentinels"));
  CHECK_NOTHROW(corrupts(std::vector<std::int16_t>(10, 7)));
  CHECK_THROWS_WITH(corrupts(std::vector<std::uint8_t>(10, 7)),
                    Contains(".sentinel = 32099 does not fit into tokens of 8 bits"));
}

}  // namespace span_corruption_test
