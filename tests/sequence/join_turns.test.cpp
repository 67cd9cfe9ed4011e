// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/sequence/join_turns.hpp>

#include <penstock/order/shuffle.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include "support/catch.hpp"
#include "support/token_documents.hpp"

#include <stdexcept>
#include <string_view>

namespace join_turns_test {

namespace ps = penstock;
using namespace penstock_test;

namespace {

struct turn {
  bool assistant;
  std::string text;
};
using conversation = std::vector<turn>;

constexpr std::int32_t user = 1, assistant = 2, end = 3;

// A token for each character, as tokenizers that append to a vector.
void tokenize(std::string_view text, std::vector<std::int32_t>& into) {
  for (const char c : text) into.push_back(c);
}
constexpr auto chat = [](const conversation& all, ps::token_turns<std::int32_t>& into) {
  for (const turn& each : all) {
    into.add(each.assistant ? assistant : user);
    into.append([&](std::vector<std::int32_t>& tokens) { tokenize(each.text, tokens); }, each.assistant);
    into.add(end, each.assistant);
  }
};

conversation some_turns(std::uint64_t i) {
  conversation all;
  for (std::uint64_t k = 0; k < i % 5; ++k) all.push_back({k % 2 == 1, std::string(k + i % 3, 'a')});
  return all;
}

}  // namespace

TEST_CASE("sequence/join_turns: pieces stand one behind the other, each trained on or not") {
  called_operation joins(ps::join_turns<std::int32_t>(chat));
  const auto made = joins(conversation{{false, "hi"}, {true, "yes"}, {false, ""}});
  CHECK(tokens_of(ps::get<"tokens">(made)) ==
        token_list{user, 'h', 'i', end, assistant, 'y', 'e', 's', end, user, end});
  CHECK(tokens_of(ps::get<"loss_mask">(made)) == token_list{0, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0});
  const auto none = joins(conversation{});
  CHECK(ps::get<"tokens">(none).empty());
  CHECK(ps::get<"loss_mask">(none).empty());
}

TEST_CASE("sequence/join_turns: spans are added, and what is there can be read") {
  ps::token_turns<std::uint16_t> turns;
  const std::vector<std::uint16_t> piece{5, 6};
  turns.add(piece, true);
  turns.add(piece);
  turns.append([](std::vector<std::uint16_t>&) {}, true);
  CHECK(tokens_of(turns.tokens()) == token_list{5, 6, 5, 6});
  CHECK(tokens_of(turns.loss_mask()) == token_list{1, 1, 0, 0});
  turns.clear();
  CHECK(turns.tokens().empty());
}

TEST_CASE("sequence/join_turns: in a plan, on any number of workers and after a restart") {
  const auto plan = ps::generated(60, some_turns) | ps::shuffle(ps::seed(3)) |
                    ps::map(ps::join_turns<std::int32_t>(chat)) | ps::batch(8, ps::ragged);
  check_same_on_any_workers(
      plan, [](const auto& batch) { return text_of(ps::get<"tokens">(batch), ps::get<"loss_mask">(batch)); });
}

TEST_CASE("sequence/join_turns: after a function that threw, the next conversation is whole") {
  called_operation joins(ps::join_turns<std::int32_t>([](int x, ps::token_turns<std::int32_t>& into) {
    into.add(x, true);
    if (x == 0) throw std::runtime_error("a turn without a role");
  }));
  CHECK_THROWS_WITH(joins(0), "a turn without a role");
  CHECK(tokens_of(ps::get<"tokens">(joins(5))) == token_list{5});
  CHECK(tokens_of(ps::get<"loss_mask">(joins(5))) == token_list{1});
}

}  // namespace join_turns_test
