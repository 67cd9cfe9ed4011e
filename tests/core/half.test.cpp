// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/half.hpp>

#include <penstock/core/random.hpp>

#include "support/catch.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

namespace ps = penstock;

static_assert(std::is_trivially_copyable_v<ps::half> && sizeof(ps::half) == 2);
static_assert(std::is_trivially_copyable_v<ps::bfloat16> && sizeof(ps::bfloat16) == 2);
static_assert(std::is_trivially_default_constructible_v<ps::half>);
static_assert(!std::is_convertible_v<float, ps::half> && std::is_convertible_v<ps::half, float>);
static_assert(!std::is_convertible_v<float, ps::bfloat16> && std::is_convertible_v<ps::bfloat16, float>);
static_assert(ps::half(1.0f).bits() == 0x3c00 && ps::half::from_bits(0xc000) == -2.0f);
static_assert(ps::bfloat16(1.0f).bits() == 0x3f80 && ps::bfloat16::from_bits(0xc000) == -2.0f);

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }

/// The value of a half, from the definition of the format.
double value_of(std::uint16_t b) {
  const int exponent = (b >> 10) & 31;
  const double fraction = b & 0x3ff;
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024.0 + fraction, exponent - 25);
  return (b & 0x8000) != 0 ? -magnitude : magnitude;
}

/// The nearest half of a finite float, found by search.
std::uint16_t nearest_half(float x) {
  const double target = std::fabs(static_cast<double>(x));
  std::uint32_t low = 0, high = 0x7c00;  // at the exponent 31 the format would have 65,536
  while (high - low > 1) {
    const std::uint32_t middle = (low + high) / 2;
    (value_of(static_cast<std::uint16_t>(middle)) <= target ? low : high) = middle;
  }
  const double below = target - value_of(static_cast<std::uint16_t>(low));
  const double above = (high == 0x7c00 ? 65536.0 : value_of(static_cast<std::uint16_t>(high))) - target;
  const bool up = above < below || (above == below && low % 2 == 1);
  return static_cast<std::uint16_t>((up ? high : low) | (std::signbit(x) ? 0x8000u : 0u));
}

std::vector<float> many_floats() {
  std::vector<float> all = {0.0f,      -0.0f,    1.0f,         inf,         -inf,      65504.0f,
                            65519.99f, 65520.0f, 65536.0f,     -65520.f,    1e30f,     -1e38f,
                            0x1p-14f,  0x1p-24f, 0x1p-25f,     0x1.8p-25f,  0x1p-149f, 0x1p-26f,
                            0x3p-25f,  0x5p-25f, 0x1.ffcp-15f, 0x1.ffep-15f};
  ps::rng random(3, 0, 0);
  for (int i = 0; i < 100'000; ++i) {
    const float any = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    all.push_back(any);
    all.push_back(static_cast<float>(random.uniform(-4, 4)));
    // halfway between two halves, and beside
    const auto h = static_cast<std::uint16_t>(random.below(0x7c00));
    const auto half_way = static_cast<float>((value_of(h) + value_of(static_cast<std::uint16_t>(h + 1))) / 2);
    all.push_back(half_way);
    all.push_back(std::nextafter(half_way, inf));
    all.push_back(-std::nextafter(half_way, -inf));
  }
  return all;
}

}  // namespace

TEST_CASE("core/half: every half becomes the float that the format defines, and comes back") {
  int wrong = 0;
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const auto b = static_cast<std::uint16_t>(i);
    const float value = ps::half::from_bits(b);
    if ((b & 0x7fff) > 0x7c00) {
      wrong += !std::isnan(value) || ps::half(value).bits() != (b | 0x200);
    } else if ((b & 0x7fff) == 0x7c00) {
      wrong += value != (b == 0x7c00 ? inf : -inf) || ps::half(value).bits() != b;
    } else {
      wrong += static_cast<double>(value) != value_of(b) || std::signbit(value) != (b >= 0x8000) ||
               ps::half(value).bits() != b;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("core/half: floats become the nearest half, ties the even one") {
  CHECK(ps::half(65504.0f).bits() == 0x7bff);
  CHECK(ps::half(65519.996f).bits() == 0x7bff);
  CHECK(ps::half(65520.0f).bits() == 0x7c00);
  CHECK(ps::half(-1e9f).bits() == 0xfc00);
  CHECK(ps::half(0x1p-25f).bits() == 0);
  CHECK(ps::half(std::nextafter(0x1p-25f, 1.0f)).bits() == 1);
  CHECK(ps::half(-0x1.8p-24f).bits() == 0x8002);
  CHECK(ps::half(2049.0f).bits() == ps::half(2048.0f).bits());
  CHECK(ps::half(2051.0f).bits() == ps::half(2052.0f).bits());
  CHECK(ps::half(std::numeric_limits<float>::quiet_NaN()).bits() == 0x7e00);
  CHECK(ps::half(std::bit_cast<float>(0xff800001u)).bits() == 0xfe00);
  int wrong = 0;
  for (const float x : many_floats())
    if (std::isfinite(x)) wrong += ps::half(x).bits() != nearest_half(x);
  CHECK(wrong == 0);
}

TEST_CASE("core/half: bfloat16 is the upper half of a float, rounded") {
  int wrong = 0;
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const auto b = ps::bfloat16::from_bits(static_cast<std::uint16_t>(i));
    wrong += bits(b) != i << 16;
    const bool nan = (i & 0x7fff) > 0x7f80;
    wrong += ps::bfloat16(static_cast<float>(b)).bits() != (nan ? i | 0x40 : i);
    if (nan || (i & 0x7fff) == 0x7f80) continue;
    wrong += ps::bfloat16(std::bit_cast<float>(i << 16 | 0x7fff)).bits() != i;
    wrong += ps::bfloat16(std::bit_cast<float>(i << 16 | 0x8001)).bits() != i + 1;
    wrong += ps::bfloat16(std::bit_cast<float>(i << 16 | 0x8000)).bits() != i + i % 2;
  }
  CHECK(wrong == 0);
  CHECK(ps::bfloat16(std::numeric_limits<float>::max()) == inf);
  CHECK(std::isnan(ps::bfloat16(std::bit_cast<float>(0x7f800001u))));
  CHECK(std::isnan(ps::bfloat16(std::bit_cast<float>(0x7fffffffu))));
}

TEST_CASE("core/half: arrays convert as single numbers do, with special instructions and without") {
  const std::vector<float> from = many_floats();
  std::vector<ps::half> halves(from.size()), portable(from.size());
  std::vector<ps::bfloat16> brains(from.size());
  ps::convert(from.data(), halves.data(), from.size());
  ps::detail::convert_portably(from.data(), portable.data(), from.size());
  ps::convert(from.data(), brains.data(), from.size());
  int wrong = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    wrong += halves[i].bits() != ps::half(from[i]).bits();
    wrong += portable[i].bits() != ps::half(from[i]).bits();
    wrong += brains[i].bits() != ps::bfloat16(from[i]).bits();
  }
  CHECK(wrong == 0);

  std::vector<ps::half> all(65536);
  std::vector<ps::bfloat16> all_brains(65536);
  for (std::uint32_t i = 0; i < 65536; ++i) {
    all[i] = ps::half::from_bits(static_cast<std::uint16_t>(i));
    all_brains[i] = ps::bfloat16::from_bits(static_cast<std::uint16_t>(i));
  }
  std::vector<float> back(65536), back_portably(65536), back_brains(65536);
  ps::convert(all.data(), back.data(), all.size());
  ps::detail::convert_portably(all.data(), back_portably.data(), all.size());
  ps::convert(all_brains.data(), back_brains.data(), all.size());
  for (std::uint32_t i = 0; i < 65536; ++i) {
    wrong += bits(back[i]) != bits(all[i]);
    wrong += bits(back_portably[i]) != bits(all[i]);
    wrong += bits(back_brains[i]) != i << 16;
  }
  CHECK(wrong == 0);
  // any length, and nothing behind the end
  for (std::size_t n = 0; n < 40; ++n) {
    std::vector<ps::half> some(41, ps::half(7.0f));
    ps::convert(from.data(), some.data(), n);
    for (std::size_t i = 0; i < 41; ++i)
      wrong += some[i].bits() != (i < n ? ps::half(from[i]) : ps::half(7.0f)).bits();
  }
  CHECK(wrong == 0);
}

TEST_CASE("core/half: the examples of its header") {
  {
    const ps::half third(1.0f / 3.0f);
    const bool close = third > 0.333f && third < 0.334f;
    CHECK(close);
  }
  {
    const ps::bfloat16 third(1.0f / 3.0f);
    const bool close = third > 0.333f && third < 0.335f;
    CHECK(close);
  }
}
