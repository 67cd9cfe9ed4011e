// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/engine/sizes.hpp>

#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>

#include "support/catch.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace ps = penstock;

namespace {

ps::run_options on(unsigned workers, std::optional<std::size_t> depth = std::nullopt) {
  ps::run_options o;
  o.workers = workers;
  o.depth = depth;
  return o;
}
constexpr auto identity = [](std::uint64_t i) { return i; };
const auto light = ps::generated(1000, identity) | ps::batch(16);
const auto words =
    ps::generated(1000, [](std::uint64_t i) { return std::vector<std::uint64_t>(3, i); }) | ps::batch(16);
using light_sizes = ps::run_sizes<std::remove_cvref_t<decltype(light)>>;
using word_sizes = ps::run_sizes<std::remove_cvref_t<decltype(words)>>;

}  // namespace

TEST_CASE("run/sizes: plans of numbers are light, others are not") {
  static_assert(ps::light_plan<std::remove_cvref_t<decltype(light)>>, "numbers of numbers are light");
  static_assert(!ps::light_plan<std::remove_cvref_t<decltype(words)>>, "vectors are not light");
  CHECK(light_sizes(on(1), 0, false, false).grain(100'000) == 65'536 / sizeof(std::uint64_t));
  CHECK(word_sizes(on(1), 0, false, false).grain(100'000) == 8);
}

TEST_CASE("run/sizes: small batches of numbers share a block, unless a depth or a device counts batches") {
  CHECK(light_sizes(on(0), 0, false, false).batches_per_block(16) == 16'384 / sizeof(std::uint64_t) / 16);
  CHECK(light_sizes(on(1), 0, true, false).batches_per_block(16) == 256);
  CHECK(light_sizes(on(1), 0, false, false).batches_per_block(1'000'000) == 1);
  CHECK(light_sizes(on(1, 3), 0, false, false).batches_per_block(16) == 1);
  CHECK(light_sizes(on(1), 0, false, true).batches_per_block(16) == 1);
  CHECK(word_sizes(on(1), 0, false, false).batches_per_block(16) == 1);
}

TEST_CASE("run/sizes: a grain is some 32 KB, never more than the block, at least one slot") {
  CHECK(word_sizes(on(2), 1024, false, false).grain(1000) == 32);
  CHECK(word_sizes(on(2), 1024, false, false).grain(20) == 20);
  CHECK(word_sizes(on(2), 1'000'000, false, false).grain(20) == 1);
  CHECK(word_sizes(on(2), 1, false, false).grain(1000) == 64);
}

TEST_CASE("run/sizes: the depth is what was asked for, or follows the workers") {
  CHECK(word_sizes(on(3, 9), 0, false, false).depth(16) == 9);
  CHECK(word_sizes(on(3, 1), 0, false, false).depth(16) == 2);
  CHECK(word_sizes(on(0), 0, false, false).depth(16) == 2);
  CHECK(word_sizes(on(1), 0, false, false).depth(16) == 4);
  CHECK(word_sizes(on(7), 0, false, false).depth(16) == 10);
  CHECK(word_sizes(on(3), 1024, true, false).depth(16) == 48);
  CHECK(word_sizes(on(3), 1'000'000, true, false).depth(16) == 6);
}

TEST_CASE("run/sizes: a chunk is some 64 KB where samples are known, else of 16 slots") {
  const auto odd = ps::generated(1000, identity) | ps::filter([](std::uint64_t i) { return i % 2 != 0; }) |
                   ps::map([](std::uint64_t i) { return std::to_string(i); });
  using sizes = ps::run_sizes<std::remove_cvref_t<decltype(odd)>>;
  CHECK(sizes(on(1), 0, false, false).chunk(odd) == 16);
  CHECK(sizes(on(1), 65'536, false, false).chunk(odd) == 1);
  CHECK(sizes(on(1), 16, false, false).chunk(odd) == 64);
}
