// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/sequence/mask_tokens.hpp>

#include <penstock/order/shuffle.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include "support/catch.hpp"
#include "support/token_documents.hpp"

#include <algorithm>

namespace mask_tokens_test {

namespace ps = penstock;
using namespace penstock_test;

namespace {

constexpr std::int64_t mask = 103, vocabulary = 30'522;

/// Undoes masking: the labels where there are any.
token_list unmasked(const token_list& tokens, const token_list& labels) {
  REQUIRE(tokens.size() == labels.size());
  token_list original = tokens;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (labels[i] != -100) original[i] = labels[i];
  return original;
}
std::size_t chosen_in(const token_list& labels) {
  return labels.size() - static_cast<std::size_t>(std::count(labels.begin(), labels.end(), -100));
}

template <class T>
void check_type() {
  called_operation masks(ps::mask_tokens({.rate = 0.5, .mask_token = 103, .vocabulary = 200}));
  const auto tokens = counted_tokens<T>(100, 1);
  std::size_t chosen = 0;
  for (std::uint64_t i = 0; i < 20; ++i) {
    const auto made = masks(tokens, i);
    STATIC_REQUIRE(
        std::is_same_v<std::remove_cvref_t<decltype(ps::get<"tokens">(made))>, std::span<const T>>);
    STATIC_REQUIRE(std::is_same_v<std::remove_cvref_t<decltype(ps::get<"labels">(made))>,
                                  std::span<const std::int64_t>>);
    const token_list labels = tokens_of(ps::get<"labels">(made));
    CHECK(unmasked(tokens_of(ps::get<"tokens">(made)), labels) == tokens_of(tokens));
    chosen += chosen_in(labels);
  }
  CHECK(chosen > 800);
  CHECK(chosen < 1200);
}

}  // namespace

TEST_CASE("sequence/mask_tokens: labels give the document back, for tokens of every type") {
  check_type<std::uint8_t>();
  check_type<std::uint16_t>();
  check_type<std::uint32_t>();
  check_type<std::int16_t>();
  check_type<std::int32_t>();
  check_type<std::int64_t>();
}

TEST_CASE("sequence/mask_tokens: 15 % are chosen, of which 80 % are masked, 10 % are random, 10 % stay") {
  called_operation masks(ps::mask_tokens({.mask_token = mask, .vocabulary = vocabulary}));
  const std::vector<std::uint16_t> tokens(1000, 40'000);  // no token of the vocabulary
  double chosen = 0, masked = 0, random = 0, kept = 0, sum = 0;
  std::vector<int> by_place(1000);
  for (std::uint64_t i = 0; i < 400; ++i) {
    const auto made = masks(tokens, i);
    for (std::size_t k = 0; k < tokens.size(); ++k) {
      const auto token = ps::get<"tokens">(made)[k];
      if (ps::get<"labels">(made)[k] == -100) {
        REQUIRE(token == 40'000);
        continue;
      }
      ++by_place[k];
      ++chosen;
      if (token == mask) {
        ++masked;
      } else if (token == 40'000) {
        ++kept;
      } else {
        REQUIRE(token < vocabulary);
        ++random;
        sum += token;
      }
    }
  }
  // Five standard deviations of each count.
  CHECK(chosen == Approx(60'000).margin(1130));
  CHECK(masked / chosen == Approx(0.8).margin(0.0082));
  CHECK(random / chosen == Approx(0.1).margin(0.0062));
  CHECK(kept / chosen == Approx(0.1).margin(0.0062));
  CHECK(sum / random == Approx(vocabulary / 2.0).margin(580));
  const auto [least, most] = std::minmax_element(by_place.begin(), by_place.end());
  CHECK(*least > 24);  // 60 expected, with a deviation of 7.1
  CHECK(*most < 96);
}

TEST_CASE("sequence/mask_tokens: documents of every length") {
  called_operation masks(ps::mask_tokens({.rate = 0.5, .mask_token = 0, .random = 0, .keep = 0}));
  for (const std::size_t n : {1u, 2u, 3u, 255u, 256u, 257u, 511u, 512u, 513u, 769u}) {
    const auto tokens = counted_tokens(n, 1);
    token_list ever(n, -100);
    for (std::uint64_t i = 0; i < 40; ++i) {
      const auto made = masks(tokens, i);
      const token_list labels = tokens_of(ps::get<"labels">(made));
      REQUIRE(unmasked(tokens_of(ps::get<"tokens">(made)), labels) == tokens_of(tokens));
      for (std::size_t k = 0; k < n; ++k) ever[k] = std::max(ever[k], labels[k]);
    }
    CHECK(ever == tokens_of(tokens));
  }
}

TEST_CASE("sequence/mask_tokens: neighbours are chosen independently of each other") {
  called_operation masks(ps::mask_tokens({.rate = 0.5, .mask_token = mask, .random = 0, .keep = 0}));
  const std::vector<std::int32_t> tokens(1000, 7);
  for (const std::size_t distance : {1u, 2u, 3u, 64u}) {
    double both = 0, all = 0;
    for (std::uint64_t i = 0; i < 100; ++i) {
      const auto made = masks(tokens, i);
      const auto labels = ps::get<"labels">(made);
      for (std::size_t k = distance; k < labels.size(); ++k) {
        both += labels[k] != -100 && labels[k - distance] != -100 ? 1 : 0;
        ++all;
      }
    }
    CHECK(both / all == Approx(0.25).margin(0.0075));
  }
}

TEST_CASE("sequence/mask_tokens: special tokens are never chosen") {
  called_operation masks(
      ps::mask_tokens({.rate = 1, .mask_token = mask, .random = 0, .keep = 0, .special = {0, 101, 102}}));
  const auto made = masks(std::vector<std::int32_t>{101, 5, 6, 102, 0, 0});
  CHECK(tokens_of(ps::get<"tokens">(made)) == token_list{101, mask, mask, 102, 0, 0});
  CHECK(tokens_of(ps::get<"labels">(made)) == token_list{-100, 5, 6, -100, -100, -100});
  const auto none = masks(std::vector<std::int32_t>{101, 102});
  CHECK(tokens_of(ps::get<"tokens">(none)) == token_list{101, 102});
  CHECK(tokens_of(ps::get<"labels">(none)) == token_list{-100, -100});
}

TEST_CASE("sequence/mask_tokens: the ends of rates, and documents of no token and of one") {
  const auto tokens = counted_tokens(50);
  called_operation never(ps::mask_tokens({.rate = 0, .mask_token = mask, .vocabulary = 9}));
  called_operation always(ps::mask_tokens({.rate = 1, .mask_token = mask, .random = 0, .keep = 0}));
  called_operation kept(ps::mask_tokens({.rate = 1, .random = 0, .keep = 1}));
  called_operation random(ps::mask_tokens({.rate = 1, .vocabulary = 5, .random = 1, .keep = 0}));
  for (std::uint64_t i = 0; i < 50; ++i) {
    CHECK(chosen_in(tokens_of(ps::get<"labels">(never(tokens, i)))) == 0);
    CHECK(tokens_of(ps::get<"tokens">(always(tokens, i))) == token_list(50, mask));
    CHECK(tokens_of(ps::get<"tokens">(kept(tokens, i))) == tokens_of(tokens));
    CHECK(tokens_of(ps::get<"labels">(kept(tokens, i))) == tokens_of(tokens));
    const auto replaced = tokens_of(ps::get<"tokens">(random(tokens, i)));
    CHECK(*std::max_element(replaced.begin(), replaced.end()) == 4);
    CHECK(*std::min_element(replaced.begin(), replaced.end()) == 0);
  }
  CHECK(ps::get<"tokens">(always(std::vector<std::int32_t>{})).empty());
  CHECK(ps::get<"labels">(always(std::vector<std::int32_t>{})).empty());
  CHECK(tokens_of(ps::get<"labels">(always(std::vector<std::int32_t>{9}))) == token_list{9});
}

namespace {

using words_sample = ps::record<ps::field<"text", std::vector<std::int32_t>>,
                                ps::field<"words", std::vector<std::int32_t>>, ps::field<"id", int>>;

}  // namespace

TEST_CASE("sequence/mask_tokens: all tokens of a word are chosen together, or none") {
  // Words of 1 to 4 tokens, as starts and as ids, with a token of no word behind each tenth.
  std::vector<std::int32_t> starts, ids;
  for (std::int32_t word = 0; word < 100; ++word) {
    for (int k = 0; k <= word % 4; ++k) {
      starts.push_back(k == 0 ? 1 : 0);
      ids.push_back(word);
    }
    if (word % 10 == 9) {
      starts.push_back(1);
      ids.push_back(-1);
    }
  }
  const auto tokens = counted_tokens(ids.size(), 1000);
  called_operation by_ids(ps::mask_tokens<"text", "targets", std::int32_t>(
      {.rate = 0.3, .mask_token = mask, .vocabulary = vocabulary}, ps::word_ids<"words">));
  called_operation by_starts(ps::mask_tokens<"text", "targets">(
      {.rate = 0.3, .mask_token = mask, .vocabulary = vocabulary}, ps::word_starts<"words">));
  double words = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const auto made = by_ids(words_sample(tokens, ids, 5), i);
    REQUIRE(ps::get<"id">(made) == 5);
    REQUIRE(ps::get<"words">(made) == ids);
    const auto labels = tokens_of(ps::get<"targets">(made));
    REQUIRE(unmasked(tokens_of(ps::get<"text">(made)), labels) == tokens_of(tokens));
    for (std::size_t k = 0; k < labels.size(); ++k) {
      if (ids[k] < 0) REQUIRE(labels[k] == -100);
      if (k > 0 && ids[k] == ids[k - 1]) REQUIRE((labels[k] == -100) == (labels[k - 1] == -100));
      if (ids[k] >= 0 && (k == 0 || ids[k] != ids[k - 1])) words += labels[k] != -100 ? 1 : 0;
    }
    // The same words, except that a token of no word is a word where only starts are marked.
    const auto other = tokens_of(ps::get<"targets">(by_starts(words_sample(tokens, starts, 5), i)));
    for (std::size_t k = 0; k < labels.size(); ++k)
      if (ids[k] >= 0) REQUIRE(other[k] == labels[k]);
  }
  CHECK(words / 100'000 == Approx(0.3).margin(0.0073));
}

TEST_CASE("sequence/mask_tokens: a special token in a word stays, and the first token begins a word") {
  called_operation masks(ps::mask_tokens<"text", "targets">(
      {.rate = 1, .mask_token = mask, .random = 0, .keep = 0, .special = {8}}, ps::word_starts<"words">));
  const std::vector<std::int32_t> tokens{7, 8, 9};
  const auto made = masks(words_sample(tokens, std::vector<std::int32_t>{0, 0, 0}, 1));
  CHECK(tokens_of(ps::get<"text">(made)) == token_list{mask, 8, mask});
  CHECK(tokens_of(ps::get<"targets">(made)) == token_list{7, -100, 9});
  CHECK_THROWS_WITH(masks(words_sample(tokens, std::vector<std::int32_t>{1, 1}, 1)),
                    Catch::Contains("the words of 'words' are those of 2 tokens, and the sample has 3"));
}

TEST_CASE("sequence/mask_tokens: fixed values, so that a run can go on with a later version") {
  // From a model in Python of Philox, SplitMix64 and this header.
  called_operation masks(
      ps::mask_tokens({.rate = 0.5, .mask_token = mask, .vocabulary = 1000, .random = 0.3, .keep = 0.2}), 42);
  const auto made = masks(counted_tokens(16, 1), 7);
  CHECK(tokens_of(ps::get<"tokens">(made)) ==
        token_list{103, 2, 103, 4, 5, 829, 573, 8, 9, 10, 11, 12, 103, 14, 103, 103});
  CHECK(tokens_of(ps::get<"labels">(made)) ==
        token_list{1, -100, 3, -100, -100, 6, 7, -100, -100, -100, -100, -100, 13, -100, 15, 16});
}

TEST_CASE("sequence/mask_tokens: in a plan, on any number of workers and after a restart") {
  const auto plan = some_documents(60) | ps::shuffle(ps::seed(3)) |
                    ps::map(ps::mask_tokens<"tokens">({.mask_token = mask, .vocabulary = vocabulary})) |
                    ps::batch(8, ps::ragged, ps::collate<"id">(ps::stack)) | ps::seed(11);
  check_same_on_any_workers(
      plan, [](const auto& batch) { return text_of(ps::get<"tokens">(batch), ps::get<"labels">(batch)); });
  // Each document is there, behind its labels.
  std::size_t seen = 0;
  for (auto&& batch : plan.epoch(0))
    for (std::size_t row = 0; row < batch.size(); ++row) {
      const auto expected = counted_tokens(ps::mix64(ps::get<"id">(batch)[row]) % 41, 100);
      CHECK(unmasked(tokens_of(ps::get<"tokens">(batch)[row]), tokens_of(ps::get<"labels">(batch)[row])) ==
            tokens_of(expected));
      ++seen;
    }
  CHECK(seen == 60);
}

TEST_CASE("sequence/mask_tokens: behind another function in one map, whose result goes") {
  const auto plan = ps::generated(20, [](std::uint64_t i) { return i; }) |
                    ps::map([](std::uint64_t i) { return counted_tokens(10 + i); },
                            ps::mask_tokens({.rate = 0.5, .mask_token = mask, .vocabulary = vocabulary})) |
                    ps::batch(4, ps::ragged);
  std::size_t row = 0;
  for (auto&& batch : plan.epoch(0))
    for (std::size_t i = 0; i < batch.size(); ++i, ++row)
      CHECK(unmasked(tokens_of(ps::get<"tokens">(batch)[i]), tokens_of(ps::get<"labels">(batch)[i])) ==
            tokens_of(counted_tokens(10 + row)));
  CHECK(row == 20);
}

TEST_CASE("sequence/mask_tokens: what is wrong with options and tokens is said") {
  using Catch::Contains;
  CHECK_THROWS_WITH(ps::mask_tokens({.rate = 1.5, .mask_token = 1, .vocabulary = 2}), Contains("rate is"));
  CHECK_THROWS_WITH(ps::mask_tokens({.mask_token = 1, .vocabulary = 2, .random = 0.7, .keep = 0.6}),
                    Contains("random and keep are shares"));
  CHECK_THROWS_WITH(ps::mask_tokens({.vocabulary = 2}), Contains(".mask_token = 103"));
  CHECK_THROWS_WITH(ps::mask_tokens({.mask_token = 1}), Contains(".vocabulary = 30'522"));
  called_operation wide(ps::mask_tokens({.mask_token = 300, .vocabulary = 100}));
  CHECK_THROWS_WITH(wide(std::vector<std::uint8_t>{1}),
                    Contains("mask_tokens: .mask_token = 300 does not fit into tokens of 8 bits"));
  called_operation many(ps::mask_tokens({.mask_token = 3, .vocabulary = 257}));
  CHECK_THROWS_WITH(many(std::vector<std::uint8_t>{1}), Contains("256 does not fit into tokens of 8 bits"));
  called_operation labels(
      ps::mask_tokens<"tokens", "labels", std::int32_t>({.rate = 1, .mask_token = 3, .vocabulary = 100}));
  CHECK_THROWS_WITH(labels(std::vector<std::uint32_t>{4'294'967'196}),  // -100 in 32 bits
                    Contains(".label = 4294967196 does not fit into tokens of 32 bits"));
}

}  // namespace mask_tokens_test
