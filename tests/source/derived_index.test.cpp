// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/source/derived_index.hpp>
#include <penstock/source/records/shard_index.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/temp_dir.hpp"

namespace ps = penstock;
namespace detail = penstock::detail;
using penstock_test::contains;
using penstock_test::error_of;
using words = std::vector<std::uint64_t>;
using lines = std::vector<std::string>;

static_assert(ps::sample_values<ps::derived_index<std::string>>, "an index is values");
static_assert(ps::sample_values<ps::derived_index<double>>, "indexes of every kind are values");
static_assert(!ps::derived_value<int>, "int is kept as std::int64_t");

namespace {

void write(const std::string& path, detail::value_kind kind, std::uint64_t dataset, const std::string& name,
           const words& values, const lines& texts = {}) {
  detail::values_header header;
  header.kind = kind;
  header.dataset = dataset;
  detail::write_values(path, header, name, values, texts);
}
std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void replace(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}
/// Corrects both checksums.
std::string sealed(std::string bytes) {
  auto* const at = reinterpret_cast<std::byte*>(bytes.data());
  const auto sum = [&](std::size_t begin, std::size_t size) {
    return detail::checksum(ps::bytes_of(bytes).subspan(begin, size));
  };
  detail::store_little<std::uint64_t>(at + 64, sum(128, bytes.size() - 128));
  detail::store_little<std::uint64_t>(at + 120, sum(0, 120));
  return bytes;
}
std::string with_word(std::string bytes, std::size_t at, std::uint64_t value) {
  detail::store_little<std::uint64_t>(reinterpret_cast<std::byte*>(bytes.data()) + at, value);
  return sealed(std::move(bytes));
}
template <class T>
std::string refusal(const std::string& path) {
  return error_of([&] { (void)ps::open_derived<T>(path); });
}

}  // namespace

TEST_CASE("source/derived_index: values of all kinds are read back") {
  const penstock_test::temp_dir dir;
  const std::string path = (dir / "x").string();
  write(path, detail::value_kind::whole, 5, "label", {3, ~std::uint64_t{0}});
  const auto label = ps::open_derived<std::int64_t>(path);
  CHECK(label.size() == 2);
  CHECK(label[1] == -1);
  CHECK(label.dataset() == 5);
  CHECK(label.name() == "label");
  CHECK(label.describe() == "index 'label'");
  CHECK(label.origin() == ps::derived_from::file);
  write(path, detail::value_kind::natural, 5, "label", {3, ~std::uint64_t{0}});
  CHECK(label[1] == -1);  // the open mapping is unaffected: the new file has another inode
  CHECK(ps::open_derived<std::uint64_t>(path)[1] == std::numeric_limits<std::uint64_t>::max());
  CHECK(ps::open_derived<std::uint64_t>(path).fingerprint() != label.fingerprint());
  write(path, detail::value_kind::floating, 5, "w", {0x3fe0000000000000u});
  CHECK(ps::open_derived<double>(path)[0] == 0.5);
  write(path, detail::value_kind::text, 5, "t", {1, 0, 2, 1}, {"dog", "", "cat"});
  const auto texts = ps::open_derived<std::string>(path);
  CHECK(texts[0].empty());
  CHECK(texts[1] == "dog");
  CHECK(texts[2] == "cat");
  write(path, detail::value_kind::text, 5, "t", {});
  CHECK(ps::open_derived<std::string>(path).size() == 0);
}

TEST_CASE("source/derived_index: the layout is the documented one") {
  const penstock_test::temp_dir dir;
  const std::string path = (dir / "x").string();
  write(path, detail::value_kind::text, 0x0102030405060708u, "kind", {1, 0}, {"ab", "c"});
  const std::string bytes = read(path);
  REQUIRE(bytes.size() == 128 + 16 + 16 + 3 + 4);
  CHECK(bytes.substr(0, 8) == "PENSTVAL");
  CHECK(bytes.substr(8, 12) == std::string("\1\0\0\0\x80\0\0\0\4\0\0\0", 12));
  CHECK(bytes.substr(24, 8) == "\x08\x07\x06\x05\x04\x03\x02\x01");
  CHECK(bytes.substr(128, 16) == std::string("\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16));
  CHECK(bytes.substr(144, 16) == std::string("\2\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0", 16));
  CHECK(bytes.substr(160) == "abckind");
  CHECK(sealed(bytes) == bytes);
}

TEST_CASE("source/derived_index: a cut or a changed byte anywhere is one error with file and offset") {
  const penstock_test::temp_dir dir;
  const std::string path = (dir / "x").string();
  write(path, detail::value_kind::text, 5, "t", {1, 0, 2, 1}, {"dog", "", "cat"});
  const std::string whole = read(path);
  const auto check = [&](const std::string& bytes) {
    replace(path, bytes);
    try {
      (void)ps::open_derived<std::string>(path);
      return false;
    } catch (const ps::error& e) {
      return e.code() == ps::errc::format && e.file() == path && e.offset().has_value() &&
             *e.offset() <= bytes.size();
    }
  };
  for (std::size_t size = 0; size < whole.size(); ++size) {
    INFO("cut to " << size);
    CHECK(check(whole.substr(0, size)));
  }
  CHECK(check(whole + '\0'));
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const int change : {1, 0x80, 0xff}) {
      std::string bytes = whole;
      bytes[i] = static_cast<char>(bytes[i] ^ change);
      INFO("byte " << i << " changed");
      CHECK(check(bytes));
    }
  }
  replace(path, whole);
  CHECK(ps::open_derived<std::string>(path)[2] == "cat");
}

TEST_CASE("source/derived_index: each fault has its sentence") {
  const penstock_test::temp_dir dir;
  const std::string path = (dir / "x").string();
  CHECK_THAT(refusal<double>(path),
             contains("cannot open the derived index") && contains("derive(...) makes it"));
  CHECK_THAT(refusal<double>(dir.path().string()), contains("is not a regular file"));
  replace(path, "PK\3\4, and so on");
  CHECK_THAT(refusal<double>(path), contains("this is not a derived index") && contains("offset 0"));
  write(path, detail::value_kind::text, 5, "t", {1, 0}, {"dog", "cat"});
  const std::string whole = read(path);
  CHECK_THAT(refusal<double>(path),
             contains("has values of std::string and not of double") && contains("offset 16"));
  std::string newer = whole;
  newer[8] = 2;
  replace(path, newer);
  CHECK_THAT(refusal<std::string>(path), contains("is of version 2") && contains("offset 8"));
  replace(path, whole.substr(0, 140));
  CHECK_THAT(refusal<std::string>(path),
             contains("has 140 bytes and should have 167") && contains("offset 140"));
}

TEST_CASE("source/derived_index: impossible numbers are refused even with correct checksums") {
  const penstock_test::temp_dir dir;
  const std::string path = (dir / "x").string();
  write(path, detail::value_kind::text, 5, "t", {1, 0}, {"dog", "cat"});
  const std::string whole = read(path);
  const auto check = [&](std::size_t at, std::uint64_t value, const std::string& says) {
    replace(path, with_word(whole, at, value));
    INFO("offset " << at << " is " << value);
    CHECK_THAT(refusal<std::string>(path), contains(says));
  };
  check(16, 0, "unknown kind");
  check(16, 5, "unknown kind");
  check(16, 1, "impossible numbers");
  check(16, std::uint64_t{1} << 32 | 4, "is damaged");
  for (const std::size_t field : {32u, 40u, 48u, 56u}) {
    check(field, ~std::uint64_t{0}, "impossible numbers");
    check(field, std::uint64_t{1} << 61, "impossible numbers");
    check(field, std::uint64_t{1} << 58, "and should have");
    check(field, 100, "and should have");
  }
  check(72, 1, "is damaged");
  check(128, 2, "a value of the derived index is text 2 of 2");
  check(136, ~std::uint64_t{0}, "is text 18446744073709551615 of 2");
  check(144, 7, "ends where it cannot");
  check(152, 2, "ends where it cannot");
  check(152, 4, "belong to no value");
}
