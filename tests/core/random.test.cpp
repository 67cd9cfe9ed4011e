// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/random.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <set>
#include <type_traits>
#include <vector>

namespace ps = penstock;

namespace random_test {

using counter = std::array<std::uint32_t, 4>;
using key = std::array<std::uint32_t, 2>;

// The known answers of Random123 (kat_vectors, philox4x32 with ten rounds), at compile time.
static_assert(ps::philox4x32_10(counter{}, key{}) ==
                  counter{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u},
              "philox4x32_10 of zeros is the published answer");
static_assert(ps::philox4x32_10(counter{0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu},
                                key{0xffffffffu, 0xffffffffu}) ==
                  counter{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu},
              "philox4x32_10 of ones is the published answer");
static_assert(ps::philox4x32_10(counter{0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u},
                                key{0xa4093822u, 0x299f31d0u}) ==
                  counter{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u},
              "philox4x32_10 of the digits of pi is the published answer");

static_assert(std::uniform_random_bit_generator<ps::rng>, "the standard's distributions accept an rng");
static_assert(std::is_trivially_copyable_v<ps::rng> && sizeof(ps::rng) == 44,
              "an rng is as large as its documentation says");

std::vector<std::uint64_t> words(ps::rng r, int count = 5) {
  std::vector<std::uint64_t> all;
  for (int i = 0; i < count; ++i) all.push_back(r());
  return all;
}

}  // namespace random_test

TEST_CASE("core/random: philox gives the published answers") {
  using random_test::counter;
  CHECK(ps::philox4x32_10(counter{}, {}) == counter{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u});
  const counter pi{0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u};
  CHECK(ps::philox4x32_10(pi, {0xa4093822u, 0x299f31d0u}) ==
        counter{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u});
}

TEST_CASE("core/random: mix64 is SplitMix64's finaliser") {
  // The first numbers of SplitMix64 seeded with 0 (Vigna's splitmix64.c): each is mix64 of the state before.
  CHECK(ps::mix64(0) == 0xe220a8397b1dcdafu);
  CHECK(ps::mix64(0x9e3779b97f4a7c15u) == 0x6e789e6aa1b965f4u);
}

TEST_CASE("core/random: equal addresses give equal numbers, different ones different numbers") {
  using random_test::words;
  CHECK(words(ps::rng(1, 2, 3, 4)) == words(ps::rng(1, 2, 3, 4)));
  const std::uint64_t high = std::uint64_t{1} << 40;
  const std::vector<ps::rng> others{
      ps::rng(1, 2, 3, 4),        ps::rng(2, 2, 3, 4),        ps::rng(1, 3, 3, 4),
      ps::rng(1, 2, 4, 4),        ps::rng(1, 2, 3, 5),        ps::rng(2, 1, 3, 4),
      ps::rng(1, 2, 4, 3),        ps::rng(1 + high, 2, 3, 4), ps::rng(1, 2 + high, 3, 4),
      ps::rng(1, 2, 3 + high, 4), ps::rng(1, 2, 3, 4 + high)};
  std::set<std::uint64_t> seen;
  for (const auto& r : others)
    for (const auto word : words(r)) seen.insert(word);
  CHECK(seen.size() == others.size() * 5);
}

TEST_CASE("core/random: a copy continues where the original was") {
  ps::rng first(1, 2, 3);
  first();
  ps::rng second = first;
  CHECK(random_test::words(first) == random_test::words(second));
}

TEST_CASE("core/random: below(n) stays below n and is uniform") {
  ps::rng r(7, 0, 0);
  CHECK(r.below(0) == 0);
  CHECK(r.below(1) == 0);
  std::array<int, 6> faces{};
  const int uses_random = 60'000;
  for (int i = 0; i < uses_random; ++i) {
    const auto face = r.below(6);
    REQUIRE(face < 6);
    ++faces[static_cast<std::size_t>(face)];
  }
  double chi_squared = 0;
  for (const int count : faces) chi_squared += (count - 10'000.0) * (count - 10'000.0) / 10'000.0;
  CHECK(chi_squared < 20.5);  // exceeded by 0.1 % of fair dice with six faces

  // A range of three quarters of all words: taking the remainder would draw the lower third twice as often.
  const std::uint64_t range = std::uint64_t{3} << 62;
  int low = 0;
  for (int i = 0; i < 30'000; ++i) {
    const auto word = r.below(range);
    REQUIRE(word < range);
    low += word < range / 3 ? 1 : 0;
  }
  CHECK(std::abs(low - 10'000) < 330);  // four standard deviations
}

TEST_CASE("core/random: uniform is in [0, 1), and in the requested interval") {
  ps::rng r(8, 0, 0);
  double sum = 0, least = 1, maximum = 0;
  const int uses_random = 50'000;
  for (int i = 0; i < uses_random; ++i) {
    const double x = r.uniform();
    REQUIRE((x >= 0 && x < 1));
    sum += x;
    least = std::min(least, x);
    maximum = std::max(maximum, x);
    const double y = r.uniform(-3, 5);
    REQUIRE((y >= -3 && y < 5));
  }
  CHECK(std::abs(sum / uses_random - 0.5) < 0.006);
  CHECK(least < 0.001);
  CHECK(maximum > 0.999);
}

TEST_CASE("core/random: chance(p) is true with probability p") {
  ps::rng r(9, 0, 0);
  int happened = 0;
  for (int i = 0; i < 40'000; ++i) {
    happened += r.chance(0.25) ? 1 : 0;
    REQUIRE(!r.chance(0));
    REQUIRE(r.chance(1));
  }
  CHECK(std::abs(happened - 10'000) < 350);
}
