// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/integer.hpp>
#include <penstock/core/random.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/count_allocations.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

namespace ps = penstock;
using penstock_test::contains;
static_assert(ps::codec<ps::integer>);
static_assert(std::is_same_v<ps::decoded<ps::integer, std::string_view>, std::int64_t>);

namespace integer_test {

template <class T = std::int64_t>
T read(std::string_view text) {
  ps::no_scratch none;
  return ps::integer_as<T>{}.decode(text, none);
}
template <class T>
void both_ends() {
  using limits = std::numeric_limits<T>;
  const std::string low = std::to_string(limits::min()), high = std::to_string(limits::max());
  CHECK(read<T>(low) == limits::min());
  CHECK(read<T>("+" + high + "\n") == limits::max());
  std::string beyond = high;
  ++beyond.back();  // every maximum ends in 5 or 7
  const auto error = codec_test::caught([&] { read<T>(beyond); });
  CHECK(error.code == ps::errc::format);
  CHECK_THAT(error.line, contains(beyond) && contains("out of range") && contains(low + " to " + high));
}

}  // namespace integer_test

TEST_CASE("codec/integer: reads decimal numbers of every width") {
  using integer_test::read;
  ps::rng random(1, 2, 3);
  const std::string_view spaces[] = {"", " ", "\n", "\r\n", "\t  "};
  for (int i = 0; i < 2000; ++i) {
    const auto value = static_cast<std::int64_t>(random()) >> random.below(64);
    std::string text(spaces[random.below(5)]);
    text += value >= 0 && random.chance(0.3) ? "+" : "";
    text += std::to_string(value);
    text += spaces[random.below(5)];
    REQUIRE(read(text) == value);
  }
  CHECK(read("007") == 7);
  CHECK(read("-0") == 0);
}

TEST_CASE("codec/integer: the limits of each type are accepted, one beyond is refused") {
  integer_test::both_ends<std::int8_t>();
  integer_test::both_ends<std::uint8_t>();
  integer_test::both_ends<std::int16_t>();
  integer_test::both_ends<std::uint32_t>();
  integer_test::both_ends<std::int64_t>();
  integer_test::both_ends<std::uint64_t>();
}

TEST_CASE("codec/integer: text that is not an integer is an error that quotes it") {
  for (const std::string_view bad :
       {"", " \n", "+", "-", "--1", "+-1", "-+1", "1 2", "1.0", "1e3", "0x10", "cat", "7\xff", "12,", "1\v2",
        "\xef\xbb\xbf"
        "7",
        "nan"}) {
    CAPTURE(bad);
    const auto error = codec_test::caught([&] { integer_test::read(bad); });
    CHECK(error.code == ps::errc::format);
    CHECK_THAT(error.line, contains("whole number was expected"));
  }
  CHECK_THAT(codec_test::caught([] { integer_test::read("7\x01\"\n"); }).line, contains(R"("7\x01\"\n")"));
  CHECK_THAT(codec_test::caught([] { integer_test::read("a text that is much longer than a number"); }).line,
             contains(R"("a text that is much "...)"));
  CHECK_THAT(codec_test::caught([] { integer_test::read<std::uint8_t>("-1"); }).line, contains("\"-1\""));
  CHECK(codec_test::caught([] { integer_test::read(std::string_view("7\0", 2)); }).code == ps::errc::format);
  // without an offset, the outer layers add the place
  CHECK(codec_test::caught([] { integer_test::read(std::string(1'000'000, '9')); }).line.size() < 200);
}

TEST_CASE("codec/integer: reads blobs, and allocates nothing") {
  ps::no_scratch none;
  int reads = 0;
  const auto bytes = codec_test::to_vector(" -42\n");
  std::int64_t value = 0;
  CHECK(penstock_test::allocations_of([&] {
          value = ps::integer{}.decode(codec_test::counted_blob{bytes, &reads}, none);
        }) == 0);
  CHECK(value == -42);
  CHECK(reads == 1);
}
