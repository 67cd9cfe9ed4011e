// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/sequence/fill_in_the_middle.hpp>

#include <penstock/order/shuffle.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include "support/catch.hpp"
#include "support/token_documents.hpp"

#include <algorithm>
#include <map>

namespace fill_in_the_middle_test {

namespace ps = penstock;
using namespace penstock_test;

namespace {

constexpr std::int64_t pre = 1, mid = 2, suf = 3, eot = 4;

struct parts {
  token_list prefix, middle, suffix;
  bool rearranged = false, suffix_first = false;
  [[nodiscard]] token_list document() const {
    token_list all = prefix;
    all.insert(all.end(), middle.begin(), middle.end());
    all.insert(all.end(), suffix.begin(), suffix.end());
    return all;
  }
};

/// Undoes rearranging. With the suffix first, prefix and middle are one part, the prefix; if `either` form
/// may be there, so are those behind an empty prefix.
parts parts_of(const token_list& tokens, bool either = true) {
  parts all;
  if (tokens.empty() || tokens[0] != pre) return {tokens, {}, {}};
  all.rearranged = true;
  const auto suffix = std::find(tokens.begin(), tokens.end(), suf);
  const auto middle = std::find(suffix, tokens.end(), mid);
  REQUIRE(middle != tokens.end());
  all.suffix.assign(suffix + 1, middle);
  all.suffix_first = either && suffix == tokens.begin() + 1 && middle + 1 != tokens.end() && middle[1] == 100;
  all.prefix.assign(tokens.begin() + 1, suffix);
  (all.suffix_first ? all.prefix : all.middle).assign(middle + 1, tokens.end());
  return all;
}

constexpr ps::fill_in_the_middle_options options(double rate, double spm_rate) {
  return {.rate = rate, .spm_rate = spm_rate, .prefix_token = pre, .middle_token = mid, .suffix_token = suf};
}

template <class T>
void check_type() {
  called_operation fills(ps::fill_in_the_middle(options(0.7, 0.5)));
  for (std::uint64_t i = 0; i < 100; ++i) {
    const auto tokens = counted_tokens<T>(i % 20, 100);
    const auto made = fills(tokens, i);
    STATIC_REQUIRE(std::is_same_v<std::remove_cvref_t<decltype(made)>, std::span<const T>>);
    const parts all = parts_of(tokens_of(made));
    CHECK(all.document() == tokens_of(tokens));
    CHECK(made.size() == tokens.size() + (all.rearranged ? 3 : 0));
  }
}

}  // namespace

TEST_CASE("sequence/fill_in_the_middle: the parts make the document again, for tokens of every type") {
  check_type<std::uint8_t>();
  check_type<std::uint16_t>();
  check_type<std::uint32_t>();
  check_type<std::int16_t>();
  check_type<std::int32_t>();
  check_type<std::int64_t>();
}

TEST_CASE("sequence/fill_in_the_middle: rates, and every two cuts equally often") {
  called_operation psm(ps::fill_in_the_middle(options(0.5, 0)));
  called_operation both(ps::fill_in_the_middle(options(1, 0.25)));
  const auto tokens = counted_tokens(4, 100);
  double rearranged = 0, suffix_first = 0;
  std::map<std::pair<std::size_t, std::size_t>, int> cuts;
  constexpr int draws = 100'000;
  for (std::uint64_t i = 0; i < draws; ++i) {
    const parts all = parts_of(tokens_of(psm(tokens, i)), false);
    rearranged += all.rearranged ? 1 : 0;
    if (all.rearranged) ++cuts[{all.prefix.size(), all.middle.size()}];
    const token_list made = tokens_of(both(tokens, i));
    REQUIRE(made[0] == pre);
    suffix_first += parts_of(made).suffix_first ? 1 : 0;
  }
  CHECK(rearranged / draws == Approx(0.5).margin(0.008));
  // Not those of the second form whose suffix is everything, but those of the first one whose prefix is empty
  // and whose middle is not: 1 and 8 of 25 pairs of cuts.
  CHECK(suffix_first / draws == Approx(0.25 * 24 / 25 + 0.75 * 8 / 25).margin(0.008));
  CHECK(cuts.size() == 15);
  for (const auto& [cut, times] : cuts) {
    const double share = cut.second == 0 ? 1.0 / 25 : 2.0 / 25;
    INFO(cut.first << ' ' << cut.second);
    CHECK(times / rearranged == Approx(share).margin(5 * 0.0013));
  }
}

TEST_CASE("sequence/fill_in_the_middle: documents of no token and of one, and the ends of the rate") {
  called_operation never(ps::fill_in_the_middle(options(0, 0.5)));
  called_operation always(ps::fill_in_the_middle(options(1, 1)));
  const std::vector<std::int32_t> none, one{100};
  bool found[3] = {};
  for (std::uint64_t i = 0; i < 40; ++i) {
    CHECK(tokens_of(never(counted_tokens(9), i)) == tokens_of(counted_tokens(9)));
    CHECK(always(none, i).empty());
    const token_list made = tokens_of(always(one, i));
    if (made == token_list{pre, suf, 100, mid})
      found[0] = true;  // the suffix
    else if (made == token_list{pre, suf, mid, 100})
      found[1] = true;  // the middle or the prefix
    else
      found[2] = true;
  }
  CHECK(found[0]);
  CHECK(found[1]);
  CHECK(!found[2]);
}

TEST_CASE("sequence/fill_in_the_middle: documents in a sample are rearranged each by itself") {
  ps::fill_in_the_middle_options with = options(0.5, 0);
  with.document_end = eot;
  called_operation fills(ps::fill_in_the_middle(with));
  // three documents, the second of no token, and the beginning of a fourth
  const std::vector<std::int32_t> tokens{100, 101, 102, eot, eot, 103, 104, eot, 105, 106};
  int rearranged[4] = {};
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const token_list made = tokens_of(fills(tokens, i));
    token_list again;
    auto at = made.begin();
    for (int document = 0; document < 4; ++document) {
      const auto end = std::find(at, made.end(), eot);
      const parts all = parts_of(token_list(at, end));
      rearranged[document] += all.rearranged ? 1 : 0;
      const token_list original = all.document();
      again.insert(again.end(), original.begin(), original.end());
      if (end != made.end()) again.push_back(eot);
      at = end == made.end() ? end : end + 1;
    }
    REQUIRE(at == made.end());
    REQUIRE(again == tokens_of(tokens));
  }
  CHECK(rearranged[1] == 0);
  for (const int document : {0, 2, 3}) CHECK(rearranged[document] == Approx(500).margin(80));
  // only ends
  CHECK(tokens_of(fills(std::vector<std::int32_t>{eot, eot})) == token_list{eot, eot});
}

TEST_CASE("sequence/fill_in_the_middle: the length stays, and the suffix loses its end") {
  ps::fill_in_the_middle_options with = options(1, 0);
  with.keep_length = true;
  called_operation fills(ps::fill_in_the_middle(with));
  const auto tokens = counted_tokens(20, 100);
  int stayed = 0;
  for (std::uint64_t i = 0; i < 500; ++i) {
    const auto made = fills(tokens, i);
    REQUIRE(made.size() == 20);
    const parts all = parts_of(tokens_of(made));
    stayed += all.rearranged ? 0 : 1;
    if (all.rearranged) CHECK(all.document() == tokens_of(counted_tokens(17, 100)));
    CHECK(fills(counted_tokens(i % 7, 100), i).size() == i % 7);
  }
  // A suffix of at most three tokens: both cuts are among the last four of 21, or one of them.
  CHECK(stayed / 500.0 == Approx(1 - 17.0 * 17 / (21 * 21)).margin(0.11));
}

TEST_CASE("sequence/fill_in_the_middle: fixed values, so that a run can go on with a later version") {
  // From a model in Python of Philox and this header.
  called_operation fills(ps::fill_in_the_middle(options(0.8, 0.5)), 42);
  const auto tokens = counted_tokens(8, 100);
  CHECK(tokens_of(fills(tokens, 0)) == token_list{1, 3, 101, 102, 103, 104, 105, 106, 107, 2, 100});
  CHECK(tokens_of(fills(tokens, 3)) == token_list{1, 100, 101, 102, 3, 104, 105, 106, 107, 2, 103});
  CHECK(tokens_of(fills(tokens, 4)) == tokens_of(tokens));
  CHECK(tokens_of(fills(tokens, 5)) == token_list{1, 3, 104, 105, 106, 107, 2, 100, 101, 102, 103});
}

TEST_CASE("sequence/fill_in_the_middle: in a plan, on any number of workers and after a restart") {
  const auto plan = some_documents(60) | ps::shuffle(ps::seed(3)) |
                    ps::map<"tokens">(ps::fill_in_the_middle(options(0.5, 0.5))) |
                    ps::batch(8, ps::ragged, ps::collate<"id">(ps::stack)) | ps::seed(11);
  check_same_on_any_workers(plan, [](const auto& batch) { return text_of(ps::get<"tokens">(batch)); });
  std::size_t seen = 0, rearranged = 0;
  for (auto&& batch : plan.epoch(0))
    for (std::size_t row = 0; row < batch.size(); ++row, ++seen) {
      const parts all = parts_of(tokens_of(ps::get<"tokens">(batch)[row]));
      rearranged += all.rearranged ? 1 : 0;
      CHECK(all.document() == tokens_of(counted_tokens(ps::mix64(ps::get<"id">(batch)[row]) % 41, 100)));
    }
  CHECK(seen == 60);
  CHECK(rearranged > 15);
}

TEST_CASE("sequence/fill_in_the_middle: what is wrong with options and tokens is said") {
  using Catch::Contains;
  CHECK_THROWS_WITH(ps::fill_in_the_middle({}), Contains("which tokens mark the parts"));
  CHECK_THROWS_WITH(ps::fill_in_the_middle(options(-0.1, 0)), Contains("rate is a probability"));
  CHECK_THROWS_WITH(ps::fill_in_the_middle(options(0, 1.1)), Contains("spm_rate is a probability"));
  ps::fill_in_the_middle_options wide = options(1, 0);
  wide.suffix_token = 50'000;
  called_operation fills(ps::fill_in_the_middle(wide));
  CHECK_THROWS_WITH(fills(std::vector<std::int16_t>{1}),
                    Contains(".suffix_token = 50000 does not fit into tokens of 16 bits"));
  ps::fill_in_the_middle_options ends = options(1, 0);
  ends.document_end = 70'000;
  called_operation short_tokens(ps::fill_in_the_middle(ends));
  CHECK_THROWS_WITH(short_tokens(std::vector<std::uint16_t>{1}),
                    Contains(".document_end = 70000 does not fit into tokens of 16 bits"));
}

}  // namespace fill_in_the_middle_test
