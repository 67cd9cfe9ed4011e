// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/order/compat/megatron_blend.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/collect.hpp"
#include "support/megatron_files.hpp"
#include "support/order_input.hpp"

#include <penstock/source/concat.hpp>
#include <penstock/source/megatron_gpt.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/storage/memory_files.hpp>

#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

namespace ps = penstock;
using codec_test::caught;
using penstock_test::contains;

static_assert(ps::order<ps::megatron_blend_order>);
static_assert(ps::order_stage<ps::megatron_blend_stage>);

namespace megatron_blend_test {

using numbers = std::vector<std::uint64_t>;
using options = ps::megatron_blend_options;

/// Weights as the oracles write them; "0": none.
std::vector<double> weights_of(const std::string& text) {
  std::vector<double> weights;
  std::istringstream all(text == "0" ? "" : text);
  for (std::string one; std::getline(all, one, ',');) weights.push_back(std::stod(one));
  return weights;
}
std::uint64_t hashed(std::uint64_t hash, std::uint64_t number) {
  return hash * 6364136223846793005u + number + 1;
}

numbers all_of(const ps::megatron_blend_order& order) {
  numbers all;
  const auto bound = order.bind(3);
  for (std::uint64_t i = 0; i < order.size(); ++i) all.push_back(bound(i).index);
  return all;
}
codec_test::thrown refusal(const ps::order_input& in, const options& asked) {
  return caught([&] { static_cast<void>(ps::megatron_blend_order(in, asked)); });
}

}  // namespace megatron_blend_test

TEST_CASE("order/compat/megatron_blend: the order of many datasets is Megatron's") {
  using namespace megatron_blend_test;
  std::istringstream lines{std::string(penstock_test::megatron_oracle("orders.txt"))};
  std::string text;
  std::uint64_t samples = 0, size = 0, hash = 0;
  int compared = 0;
  for (; lines >> text >> samples >> size >> hash; ++compared) {
    const std::vector<double> weights = weights_of(text);
    CAPTURE(text);
    const std::uint64_t each = samples + 2;  // enough for any weight
    const auto order = ps::megatron_blend(options{weights, samples})
                           .make(penstock_test::input(numbers(weights.size(), each)));
    REQUIRE(order.size() == size);
    std::uint64_t mine = 0;
    for (const std::uint64_t number : all_of(order))
      mine = hashed(hashed(mine, number / each), number % each);
    CHECK(mine == hash);
  }
  CHECK(compared == 6);
}

TEST_CASE("order/compat/megatron_blend: blends of datasets are Megatron's, token for token") {
  using namespace megatron_blend_test;
  const auto memory_of = [](const std::string& name) {
    ps::memory_files memory;
    for (const std::string& one : {name + ".bin", name + ".idx"})
      memory.add(one, codec_test::to_vector(penstock_test::megatron_oracle(one)));
    return memory;
  };
  std::istringstream lines{std::string(penstock_test::megatron_oracle("blends.txt"))};
  std::string text;
  std::uint64_t samples = 0, length = 0, seed = 0, size = 0, hash = 0;
  int compared = 0;
  for (; lines >> text >> samples >> length >> seed >> size >> hash; ++compared) {
    CAPTURE(text, samples);
    const std::vector<double> weights = weights_of(text);
    numbers each(2, 0);  // without weights each is of one epoch
    if (!weights.empty()) each = ps::megatron_blend_samples(weights, samples);
    const auto source = [&](const std::string& name, std::uint64_t asked) {
      return ps::megatron_gpt<std::uint16_t>(memory_of(name), ps::token_windows{.length = length},
                                             {.samples = asked, .seed = seed});
    };
    const auto blend = ps::concat(source("made", each[0]), source("more", each[1])) |
                       ps::megatron_blend({.weights = weights, .samples = samples});
    const auto tokens = penstock_test::values_of(blend | ps::batch(8));
    REQUIRE(tokens.size() == size * (length + 1));
    std::uint64_t mine = 0;
    for (const std::uint16_t one : tokens) mine = hashed(mine, one);
    CHECK(mine == hash);
  }
  CHECK(compared == 5);
}

TEST_CASE("order/compat/megatron_blend: positions are found again, and samples come once") {
  using namespace megatron_blend_test;
  const ps::megatron_blend_order order(penstock_test::input({30, 50, 20}), {{1, 2, 1}, 60});
  REQUIRE(order.size() == 60);
  std::vector<bool> seen(100);
  const auto bound = order.bind(1);
  for (std::uint64_t i = 0; i < order.size(); ++i) {
    const ps::position at = bound(i);
    CHECK(at.epoch == 1);
    REQUIRE_FALSE(seen[ps::detail::to_size(at.index)]);
    seen[ps::detail::to_size(at.index)] = true;
    REQUIRE(order.position_of(at) == ps::position{1, i});
  }
  CHECK_FALSE(order.position_of({1, 29}));
  const ps::megatron_blend_order whole(penstock_test::plain_input(9), {});
  CHECK(all_of(whole) == numbers{0, 1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(ps::megatron_blend_order(penstock_test::input({3, 6}), {.samples = 100}).size() == 9);
  CHECK_THAT(ps::megatron_blend({{0.5, 0.5}, 7}).describe(), contains("2 weights, 7 samples"));
  CHECK(ps::megatron_blend_samples({1, 1}, 1000, 0) == numbers{500, 500});
  CHECK(ps::megatron_blend_samples({1, 1}, 1000) == numbers{503, 503});
}

TEST_CASE("order/compat/megatron_blend: impossible options are refused with a reason") {
  using namespace megatron_blend_test;
  const auto line = [](const options& asked) {
    const auto thrown = refusal(penstock_test::input({30, 50}), asked);
    CHECK(thrown.code == ps::errc::argument);
    return thrown.line;
  };
  CHECK_THAT(line({{1, 2, 3}, 10}), contains("3 weights do not fit 2 datasets"));
  CHECK_THAT(line({{1, 2}, 0}), contains("need a number of samples"));
  CHECK_THAT(line({{0, 0}, 10}), contains("all weights are 0"));
  CHECK_THAT(line({{-1, 2}, 10}), contains("from 0 to 2^53"));
  CHECK_THAT(line({{std::stod("nan"), 2}, 10}), contains("from 0 to 2^53"));
  CHECK_THAT(line({{1, 1}, 80}), contains("more samples of dataset 0 than the 30 it has"));
  CHECK_THAT(line({{1, 1}, std::uint64_t{1} << 40}), contains("more than 2^32 - 1"));
  CHECK_THAT(refusal(penstock_test::plain_input(0), {}).line, contains("no samples"));
  CHECK(caught([] { static_cast<void>(ps::megatron_blend_samples({1}, 10, -1)); }).code ==
        ps::errc::argument);
}
