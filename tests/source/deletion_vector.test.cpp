// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/error.hpp>
#include <penstock/core/random.hpp>
#include <penstock/source/tables/deletion_vector.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;

namespace deletion_vector_test {

std::string little(std::uint64_t value, std::size_t size) {
  std::string made;
  for (std::size_t i = 0; i < size; ++i) made += static_cast<char>(value >> (8 * i) & 255);
  return made;
}
const std::string front = little(1681511377, 4);

std::vector<std::uint64_t> numbers_in(const std::string& bytes, std::uint64_t maximum = 1 << 20) {
  return ps::detail::read_deletion_vector(ps::bytes_of(std::string_view(bytes)), maximum);
}

/// Runs from 10 to 12 and from 65,534 on, an array, and all even numbers as bits, behind 2^32.
std::string all_kinds() {
  std::string bits;
  for (int i = 0; i < 8192; ++i) bits += '\x55';
  return front + little(2, 8) + little(0, 4) + little(12347 | 1 << 16, 4) + "\1" + little(0, 2) +
         little(4, 2) + little(3, 2) + little(1, 2) + little(2, 2) + little(10, 2) + little(2, 2) +
         little(65534, 2) + little(1, 2) + little(7, 2) + little(9, 2) + little(1, 4) + little(12346, 4) +
         little(1, 4) + little(0, 2) + little(32767, 2) + little(0, 4) + bits;
}

}  // namespace deletion_vector_test

using namespace deletion_vector_test;

TEST_CASE("source/deletion_vector: runs, arrays and bits") {
  const auto found = numbers_in(all_kinds());
  REQUIRE(found.size() == 5 + 2 + 32768);
  CHECK(std::vector(found.begin(), found.begin() + 7) ==
        std::vector<std::uint64_t>{10, 11, 12, 65534, 65535, 3 * 65536 + 7, 3 * 65536 + 9});
  CHECK(found[7] == std::uint64_t{1} << 32);
  CHECK(found.back() == (std::uint64_t{1} << 32) + 65534);
  CHECK(numbers_in(front + little(0, 8)).empty());
}

TEST_CASE("source/deletion_vector: what is cut off or damaged is an error, or numbers in order") {
  const std::string whole = all_kinds();
  for (std::size_t size = 0; size < whole.size(); size += size < 100 ? 1 : 97)
    CHECK_THROWS_AS(numbers_in(whole.substr(0, size)), ps::error);
  ps::rng random(1, 2, 3);
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = whole;
    char& byte = damaged[static_cast<std::size_t>(random.below(100))];
    byte = static_cast<char>(byte ^ (1 << random.below(8)));
    try {
      const auto found = numbers_in(damaged);
      CHECK(std::is_sorted(found.begin(), found.end()));
    } catch (const ps::error&) {
    }
  }
  CHECK_THROWS_WITH(numbers_in(whole, 100), Catch::Contains("more than 100 numbers"));
  CHECK_THROWS_WITH(numbers_in("abcd"), Catch::Contains("not in the format that Delta calls portable"));
}

TEST_CASE("source/deletion_vector: Z85 and the names of files") {
  // The example of ZeroMQ's RFC 32.
  const auto bytes = ps::detail::from_z85("HelloWorld");
  CHECK(ps::text_of(ps::bytes_view(bytes.data(), bytes.size())) == "\x86\x4f\xd2\x6f\xb5\x59\xf7\x5b");
  CHECK(ps::detail::deletion_vector_name("ab00000000000000000000") ==
        "ab/deletion_vector_00000000-0000-0000-0000-000000000000.bin");
  // The example of Delta's protocol.
  CHECK(ps::detail::deletion_vector_name("ab^-aqEH.-t@S}K{vb[*k^") ==
        "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin");
  CHECK_THROWS_WITH(ps::detail::from_z85("abc"), Catch::Contains("no multiple of 5"));
  CHECK_THROWS_WITH(ps::detail::from_z85("#####"), Catch::Contains("more than four bytes"));
  CHECK_THROWS_WITH(ps::detail::from_z85("a b c"), Catch::Contains("no digit of it"));
  CHECK_THROWS_WITH(ps::detail::deletion_vector_name("short"), Catch::Contains("names no file"));
}
