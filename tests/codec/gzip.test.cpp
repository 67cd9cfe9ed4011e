// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/gzip.hpp>
#include <penstock/core/random.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/count_allocations.hpp"
#include "support/test_data.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace ps = penstock;
using codec_test::byte_vector;
using codec_test::caught;
using codec_test::from_base64;
using codec_test::joined;
using penstock_test::contains;
using namespace penstock::literals;

static_assert(ps::codec<ps::gzip>);
static_assert(ps::blob<ps::decoded<ps::gzip, ps::bytes_view>> && ps::byte_element<ps::gzip_bytes>);

namespace gzip_test {

byte_vector content(std::size_t size, std::uint64_t seed) {
  ps::rng random(seed, 0, 0);
  byte_vector bytes;
  while (bytes.size() < size)
    bytes.insert(bytes.end(), 1 + random.below(40), static_cast<std::byte>(random()));
  bytes.resize(size);
  return bytes;
}
byte_vector packed(ps::bytes_view bytes, int level = 6) {
  const std::unique_ptr<libdeflate_compressor, void (*)(libdeflate_compressor*)> compressor(
      libdeflate_alloc_compressor(level), libdeflate_free_compressor);
  byte_vector out(libdeflate_gzip_compress_bound(compressor.get(), bytes.size()));
  const std::size_t size =
      libdeflate_gzip_compress(compressor.get(), bytes.data(), bytes.size(), out.data(), out.size());
  REQUIRE(size != 0);
  out.resize(size);
  return out;
}
/// `member` with another header: flags and the fields that they announce.
byte_vector with_header(const byte_vector& member, unsigned flags) {
  byte_vector out(member.begin(), member.begin() + 10);
  out[3] = static_cast<std::byte>(flags);
  const auto add = [&](std::string_view text) { out = joined(out, codec_test::to_vector(text)); };
  if ((flags & 4) != 0) add(std::string_view("\x05\0extra", 7));
  if ((flags & 8) != 0) add(std::string_view("name.txt\0", 9));
  if ((flags & 16) != 0) add(std::string_view("a comment\0", 10));
  if ((flags & 2) != 0) {
    const std::uint32_t sum = libdeflate_crc32(0, out.data(), out.size());
    out.push_back(static_cast<std::byte>(sum));
    out.push_back(static_cast<std::byte>(sum >> 8));
  }
  out.insert(out.end(), member.begin() + 10, member.end());
  return out;
}

byte_vector unpacked(const byte_vector& bytes, std::uint64_t limit = 1_GiB) {
  ps::gzip_scratch scratch;
  const auto blob = ps::gzip{.limit = limit}.decode(bytes, scratch);
  byte_vector into(static_cast<std::size_t>(blob.size()));
  blob.read_into(into);
  REQUIRE(codec_test::to_vector(blob.finish()) == into);
  return into;
}
codec_test::thrown failure(const byte_vector& bytes, std::uint64_t limit = 1_GiB) {
  return caught([&] { unpacked(bytes, limit); });
}

// gzip says no size that could be believed, so its content is always there before the blob.
static_assert(!std::is_constructible_v<ps::gzip_bytes, ps::gzip_scratch&, ps::bytes_view, std::uint64_t>);

}  // namespace gzip_test

TEST_CASE("codec/gzip: decompresses content of every size and level") {
  for (const std::size_t size : {0u, 1u, 100u, 1023u, 1024u, 1025u, 65536u, 700'000u})
    for (const int level : {1, 6, 12}) {
      CAPTURE(size, level);
      const byte_vector content = gzip_test::content(size, size);
      REQUIRE(gzip_test::unpacked(gzip_test::packed(content, level)) == content);
    }
  // the best ratio of any encoder: the estimated size must reach it, whatever the last four bytes
  // say
  const byte_vector zeros(20'000'000);
  CHECK(gzip_test::unpacked(gzip_test::packed(zeros)) == zeros);
  CHECK(gzip_test::unpacked(joined(gzip_test::packed(zeros), gzip_test::packed({}))) == zeros);
}

TEST_CASE("codec/gzip: skips every kind of header") {
  const byte_vector content = gzip_test::content(500, 1);
  const byte_vector member = gzip_test::packed(content);
  for (unsigned flags = 0; flags < 32; ++flags) {
    CAPTURE(flags);
    const byte_vector whole = gzip_test::with_header(member, flags);
    CHECK(gzip_test::unpacked(whole) == content);
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const auto error =
          gzip_test::failure(byte_vector(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)));
      REQUIRE(error.code == ps::errc::format);
      REQUIRE(!error.line.empty());
    }
  }
  for (const unsigned reserved : {0x20u, 0x40u, 0x80u}) {
    byte_vector bad = member;
    bad[3] = static_cast<std::byte>(reserved);
    CHECK_THAT(gzip_test::failure(bad).line, contains("reserved"));
  }
  byte_vector bad = gzip_test::with_header(member, 2);
  bad[10] ^= std::byte{1};
  CHECK(gzip_test::failure(bad).code == ps::errc::checksum);
}

TEST_CASE("codec/gzip: takes several members and zeros after the last") {
  using namespace gzip_test;
  const byte_vector a = content(3000, 1), b = content(200'000, 2);
  const byte_vector both = joined(packed(a), joined(packed({}), packed(b)));
  CHECK(unpacked(both) == joined(a, b));
  for (const std::size_t zeros : {1u, 2u, 511u})
    CHECK(unpacked(joined(both, byte_vector(zeros))) == joined(a, b));
  byte_vector many, expected;
  for (std::uint64_t i = 0; i < 300; ++i) {
    many = joined(many, packed(content(i * 7, i)));
    expected = joined(expected, content(i * 7, i));
  }
  CHECK(unpacked(many) == expected);
  const auto error = failure(joined(both, codec_test::to_vector("junk")));
  CHECK(error.code == ps::errc::format);
  CHECK_THAT(error.line,
             contains("after the last gzip member") && contains("offset " + std::to_string(both.size())));
  CHECK_THAT(failure(joined(both, joined(byte_vector(5), packed(a)))).line,
             contains("after the last gzip member"));
  CHECK_THAT(failure(joined(both, {std::byte{0x1f}})).line, contains("after the last gzip member"));
}

TEST_CASE("codec/gzip: content beyond the limit is refused and costs no more than the limit") {
  using namespace gzip_test;
  const byte_vector zeros(10'000'000);
  const byte_vector bomb = packed(zeros);
  REQUIRE(bomb.size() < 11'000);
  CHECK(unpacked(bomb, zeros.size()) == zeros);
  for (const std::uint64_t limit : {std::uint64_t{0}, std::uint64_t{1000}, std::uint64_t{zeros.size() - 1}}) {
    ps::gzip_scratch scratch;
    const auto error = caught([&] { static_cast<void>(ps::gzip{.limit = limit}.decode(bomb, scratch)); });
    CHECK(error.code == ps::errc::limit);
    CHECK_THAT(error.line, contains(std::to_string(limit)) && contains("gzip{.limit = ...}"));
    CHECK(scratch.content.capacity() <= limit + limit / 4);
  }
  byte_vector many;
  for (int i = 0; i < 20; ++i) many = joined(many, packed(content(100, 1)));
  CHECK(unpacked(many, 2000).size() == 2000);
  CHECK(failure(many, 1999).code == ps::errc::limit);
  CHECK(unpacked(packed({}), 0).empty());
}

TEST_CASE("codec/gzip: a false trailer is an error, and allocates no more than the input can expand to") {
  using namespace gzip_test;
  const byte_vector bytes = content(5000, 3);
  const byte_vector good = packed(bytes);
  for (const std::uint32_t lie : {0u, 1u, 4999u, 5001u, 0x7fffffffu, 0xffffffffu}) {
    byte_vector bad = good;
    for (std::size_t i = 0; i < 4; ++i) bad[good.size() - 4 + i] = static_cast<std::byte>(lie >> (8 * i));
    ps::gzip_scratch scratch;
    CHECK(caught([&] { static_cast<void>(ps::gzip{}.decode(bad, scratch)); }).code == ps::errc::format);
    CHECK(scratch.content.capacity() < good.size() * 1300);
  }
  byte_vector bad = good;
  bad[good.size() - 8] ^= std::byte{1};
  CHECK(failure(bad).code == ps::errc::checksum);
  CHECK_THAT(failure(codec_test::to_vector("not compressed")).line,
             contains("this is not gzip") && contains("offset 0"));
  CHECK_THAT(failure({}).line, contains("this is not gzip"));
}

TEST_CASE("codec/gzip: every flipped bit of the content is noticed") {
  using namespace gzip_test;
  const byte_vector bytes = content(2000, 5);
  const byte_vector good = packed(bytes);
  std::size_t unnoticed = 0;
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    byte_vector bad = good;
    bad[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
    static_cast<void>(caught([&] {
      if (unpacked(bad, 16_MiB) != bytes) ++unnoticed;
    }));
  }
  CHECK(unnoticed == 0);
}

TEST_CASE("codec/gzip: allocates nothing once its scratch has grown") {
  const byte_vector content = gzip_test::content(50'000, 9);
  const byte_vector input = joined(gzip_test::packed(content), gzip_test::packed(content));
  ps::gzip_scratch scratch;
  byte_vector into(content.size() * 2);
  const auto sample = [&] { ps::gzip{}.decode(input, scratch).read_into(into); };
  sample();
  CHECK(penstock_test::allocations_of([&] {
          for (int i = 0; i < 20; ++i) sample();
        }) == 0);
  CHECK(into == joined(content, content));
  CHECK(caught([&] { ps::gzip{}.decode(input, scratch).read_into(std::span(into).first(7)); }).code ==
        ps::errc::argument);
}

TEST_CASE("codec/gzip: reads real files") {
  const auto folder = penstock_test::test_data("gzip");
  if (!folder) {
    WARN("PENSTOCK_TEST_DATA has no gzip: real files are not read");
    return;
  }
  codec_test::each_file(*folder / "idx", [](const std::string& name, const byte_vector& file) {
    CAPTURE(name);
    const byte_vector content = gzip_test::unpacked(file);
    CHECK(content.size() ==
          (name.find("images") != std::string::npos ? 16u + 10'000u * 28 * 28 : 8u + 10'000u));
  });
  // a damaged stream that once made a reader hang: issue 6550 of the Go project
  codec_test::each_file(*folder / "golang", [](const std::string& name, const byte_vector& file) {
    CAPTURE(name);
    const byte_vector packed = from_base64(ps::text_of(file));
    REQUIRE(packed.size() > 1000);
    static_cast<void>(gzip_test::failure(packed));
  });
  for (const char* const part : {"fuzz", "bad", "libarchive"})
    codec_test::each_file(*folder / part, [](const std::string&, const byte_vector& file) {
      static_cast<void>(gzip_test::failure(file, 64_MiB));
    });
}
