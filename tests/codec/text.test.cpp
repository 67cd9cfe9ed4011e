// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/text.hpp>
#include <penstock/core/random.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/count_allocations.hpp"
#include "support/test_data.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace ps = penstock;
using penstock_test::contains;
static_assert(ps::codec<ps::text>);

namespace text_test {

/// UTF-8 by the arithmetic of its definition: an oracle that shares no table with the codec.
std::string encoded(std::uint32_t c) {
  const auto tail = [](std::uint32_t bits) { return static_cast<char>(0x80 | (bits & 0x3f)); };
  if (c < 0x80) return {static_cast<char>(c)};
  if (c < 0x800) return {static_cast<char>(0xc0 | c >> 6), tail(c)};
  if (c < 0x10000) return {static_cast<char>(0xe0 | c >> 12), tail(c >> 6), tail(c)};
  return {static_cast<char>(0xf0 | c >> 18), tail(c >> 12), tail(c >> 6), tail(c)};
}
bool surrogate(std::uint32_t c) { return c >= 0xd800 && c < 0xe000; }
std::size_t good(std::string_view text) { return ps::detail::valid_utf8_prefix(ps::bytes_of(text)); }

}  // namespace text_test

TEST_CASE("codec/text: accepts every Unicode scalar value, alone and after ASCII, and no surrogate") {
  for (std::uint32_t c = 0; c < 0x110000; ++c) {
    const std::string one = text_test::encoded(c);
    if (text_test::good(one) != (text_test::surrogate(c) ? 0 : one.size())) FAIL(c);
    const std::string after = "thirty-two characters before it:" + one + "z";
    if (text_test::good(after) != (text_test::surrogate(c) ? 32 : after.size())) FAIL(c);
  }
  SUCCEED();
}

TEST_CASE("codec/text: of all sequences of up to three bytes exactly the encoded characters pass") {
  std::size_t passed = 0;
  char bytes[3];
  for (int a = 0x80; a < 0x100; ++a)
    for (int b = 0; b < 0x100; ++b) {
      bytes[0] = static_cast<char>(a);
      bytes[1] = static_cast<char>(b);
      passed += text_test::good({bytes, 2}) == 2 ? 1u : 0u;
      for (int c = 0; c < 0x100; ++c) {
        bytes[2] = static_cast<char>(c);
        passed += text_test::good({bytes, 3}) == 3 ? 1u : 0u;
      }
    }
  // two bytes: U+80 to U+7FF; three: those and one ASCII character after, and U+800 to U+FFFF without
  // surrogates
  CHECK(passed == 1920 + 1920 * 128 + (0x10000 - 0x800 - 0x800));
}

TEST_CASE("codec/text: gives the offset of the first bad byte, and can skip the check") {
  ps::no_scratch none;
  const std::string_view bad = "a caf\xe9 in Latin-1";
  const auto error = codec_test::caught([&] { static_cast<void>(ps::text{}.decode(bad, none)); });
  CHECK(error.code == ps::errc::format);
  CHECK_THAT(error.line,
             contains("not UTF-8") && contains("\\xe9") && contains("offset 5") && contains("check = false"));
  CHECK(ps::text{.check = false}.decode(bad, none).data() == bad.data());
  for (const std::string_view cut : {"\xc3", "ab\xe2\x82", "\xf0\x9f\x98", "12345678\xf0"}) {
    CAPTURE(cut);
    CHECK(codec_test::caught([&] { static_cast<void>(ps::text{}.decode(cut, none)); }).code ==
          ps::errc::format);
  }
}

TEST_CASE("codec/text: is a view of the bytes, without an allocation") {
  ps::no_scratch none;
  const std::string whole = "zw\xc3\xb6lf Boxk\xc3\xa4mpfer \xf0\x9f\xa5\x8a jagen";
  std::string_view out;
  CHECK(penstock_test::allocations_of([&] { out = ps::text{}.decode(whole, none); }) == 0);
  CHECK(out.data() == whole.data());
  CHECK(out == whole);
  int reads = 0;
  CHECK(ps::text{}.decode(codec_test::counted_blob{ps::bytes_of(whole), &reads}, none) == whole);
  CHECK(reads == 1);
  CHECK(ps::text{}.decode(ps::bytes_view{}, none).empty());
}

TEST_CASE("codec/text: random damage is found at its offset") {
  ps::rng random(4, 5, 6);
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    const auto length = random.below(30);
    const auto bad_at = random.below(length + 1);
    std::size_t expected = 0;
    for (std::uint64_t i = 0; i <= length; ++i) {
      if (i == bad_at) {
        expected = text.size();
        text += static_cast<char>(random.chance(0.5) ? 0xff : 0xc0);
      }
      std::uint32_t c = static_cast<std::uint32_t>(random.below(random.chance(0.5) ? 0x80 : 0x110000));
      if (text_test::surrogate(c)) c = 'x';
      text += text_test::encoded(c);
    }
    REQUIRE(text_test::good(text) == expected);
  }
}

TEST_CASE("codec/text: accepts real text") {
  const auto folder = penstock_test::test_data("tokens/text");
  if (!folder) {
    WARN("PENSTOCK_TEST_DATA has no tokens/text: real texts are not read");
    return;
  }
  codec_test::each_file(*folder, [](const std::string& name, const codec_test::byte_vector& bytes) {
    CAPTURE(name);
    ps::no_scratch none;
    CHECK(ps::text{}.decode(bytes, none).size() == bytes.size());
  });
}
