// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/zstd.hpp>
#include <penstock/core/random.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/count_allocations.hpp"
#include "support/test_data.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;
using codec_test::byte_vector;
using codec_test::caught;
using codec_test::joined;
using penstock_test::contains;
using namespace penstock::literals;

static_assert(ps::codec<ps::zstd>);
static_assert(ps::blob<ps::decoded<ps::zstd, ps::bytes_view>> && ps::byte_element<ps::zstd_bytes>);

namespace zstd_test {

/// Content that compresses somewhat: runs of random lengths.
byte_vector content(std::size_t size, std::uint64_t seed) {
  ps::rng random(seed, 0, 0);
  byte_vector bytes;
  while (bytes.size() < size)
    bytes.insert(bytes.end(), 1 + random.below(40), static_cast<std::byte>(random()));
  bytes.resize(size);
  return bytes;
}

struct frame {
  bool sized = true;
  bool checksum = false;
  int level = 3;
};
byte_vector packed(ps::bytes_view bytes, frame options = {}) {
  const std::unique_ptr<ZSTD_CCtx, std::size_t (*)(ZSTD_CCtx*)> context(ZSTD_createCCtx(), ZSTD_freeCCtx);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_contentSizeFlag, options.sized ? 1 : 0);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, options.checksum ? 1 : 0);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, options.level);
  byte_vector out(ZSTD_compressBound(bytes.size()));
  const std::size_t size = ZSTD_compress2(context.get(), out.data(), out.size(), bytes.data(), bytes.size());
  REQUIRE(!ZSTD_isError(size));
  out.resize(size);
  return out;
}
byte_vector skippable(std::size_t size) {
  byte_vector bytes = codec_test::to_vector(std::string_view("\x5a\x2a\x4d\x18", 4));
  for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<std::byte>(size >> (8 * i)));
  bytes.resize(bytes.size() + size, std::byte{0x28});
  return bytes;
}

/// Decompresses by both paths, which must agree.
byte_vector unpacked(const byte_vector& bytes, std::uint64_t limit = 1_GiB) {
  ps::zstd_scratch scratch;
  const ps::zstd codec{.limit = limit};
  const auto direct = codec.decode(bytes, scratch);
  byte_vector into(static_cast<std::size_t>(direct.size()));
  direct.read_into(into);
  const auto again = codec.decode(bytes, scratch);
  REQUIRE(codec_test::to_vector(again.finish()) == into);
  again.read_into(into);  // after finish this is a copy
  REQUIRE(codec_test::to_vector(again.finish()) == into);
  return into;
}
codec_test::thrown failure(const byte_vector& bytes, std::uint64_t limit = 1_GiB) {
  return caught([&] { unpacked(bytes, limit); });
}

}  // namespace zstd_test

TEST_CASE("codec/zstd: decompresses content of every size, with and without a size in the frame") {
  for (const std::size_t size : {0u, 1u, 255u, 256u, 257u, 4096u, 65791u, 65792u, 131072u, 131073u, 700'000u})
    for (const bool sized : {true, false})
      for (const bool checksum : {true, false})
        for (const int level : {-5, 1, 9}) {
          CAPTURE(size, sized, checksum, level);
          const byte_vector content = zstd_test::content(size, size);
          const byte_vector packed = zstd_test::packed(content, {sized, checksum, level});
          REQUIRE(zstd_test::unpacked(packed) == content);
        }
}

TEST_CASE("codec/zstd: decompresses straight into the destination if the size is known") {
  const byte_vector content = zstd_test::content(100'000, 1);
  const byte_vector packed = zstd_test::packed(content);
  ps::zstd_scratch scratch;
  byte_vector into(content.size());
  CHECK(ps::zstd{}.decode(packed, scratch).size() == content.size());
  ps::zstd{}.decode(packed, scratch).read_into(into);
  CHECK(into == content);
  CHECK(scratch.content.capacity() == 0);
  byte_vector small(content.size() - 1);
  CHECK(caught([&] { ps::zstd{}.decode(packed, scratch).read_into(small); }).code == ps::errc::argument);
}

TEST_CASE("codec/zstd: takes several frames and skips skippable ones") {
  using namespace zstd_test;
  const byte_vector a = content(3000, 1), b = content(200'000, 2);
  for (const bool first : {true, false})
    for (const bool second : {true, false}) {
      byte_vector all = joined(skippable(0), packed(a, {first, true}));
      all = joined(joined(all, skippable(1000)), packed(b, {second, false}));
      all = joined(joined(all, packed({})), skippable(3));
      REQUIRE(unpacked(all) == joined(a, b));
    }
  CHECK(unpacked(skippable(10)).empty());
}

TEST_CASE("codec/zstd: content beyond the limit is refused, if possible before it is decompressed") {
  using namespace zstd_test;
  const byte_vector zeros(10'000'000);
  for (const bool sized : {true, false}) {
    const byte_vector bomb = packed(zeros, {sized});
    REQUIRE(bomb.size() < 2000);
    CHECK(unpacked(bomb, zeros.size()) == zeros);
    const auto error = failure(bomb, zeros.size() - 1);
    CHECK(error.code == ps::errc::limit);
    CHECK_THAT(error.line, contains("9999999") && contains("zstd{.limit = ...}"));
    ps::zstd_scratch scratch;
    CHECK(caught([&] { static_cast<void>(ps::zstd{.limit = 1000}.decode(bomb, scratch)); }).code ==
          ps::errc::limit);
    CHECK(scratch.content.capacity() < 2000);
    // many small frames add up to a large content
    byte_vector many;
    for (int i = 0; i < 20; ++i) many = joined(many, packed(content(100, 1), {sized}));
    CHECK(unpacked(many, 2000).size() == 2000);
    CHECK(failure(many, 1999).code == ps::errc::limit);
  }
  CHECK(unpacked(packed({}), 0).empty());
}

TEST_CASE("codec/zstd: a false size is an error and never an overflow") {
  using namespace zstd_test;
  const byte_vector bytes = content(70'000, 3);
  const byte_vector good = packed(bytes);
  REQUIRE(std::to_integer<int>(good[4]) >> 6 == 2);  // four bytes of size, after one of window or none
  const std::size_t field = (std::to_integer<int>(good[4]) & 0x20) != 0 ? 5 : 6;
  for (const std::uint32_t lie : {0u, 1u, 69'999u, 70'001u, 131'072u, 262'144u, 0x7fffffffu, 0xffffffffu}) {
    CAPTURE(lie);
    byte_vector bad = good;
    for (std::size_t i = 0; i < 4; ++i) bad[field + i] = static_cast<std::byte>(lie >> (8 * i));
    const auto error = failure(bad, 8_GiB);
    CHECK(error.code == ps::errc::format);
    if (lie >= 0x7fffffffu) CHECK_THAT(error.line, contains("its blocks hold at most"));
  }
}

TEST_CASE("codec/zstd: every truncated payload is an error") {
  using namespace zstd_test;
  for (const bool sized : {true, false}) {
    const byte_vector good = packed(content(3000, 4), {sized, true});
    for (std::size_t size = 0; size < good.size(); ++size) {
      const auto error = failure(byte_vector(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)));
      REQUIRE(error.code == ps::errc::format);
      REQUIRE(!error.line.empty());
    }
  }
  CHECK_THAT(failure({}).line, contains("no bytes"));
}

TEST_CASE("codec/zstd: with a checksum every flipped bit is noticed, without one it is at least harmless") {
  using namespace zstd_test;
  const byte_vector bytes = content(2000, 5);
  for (const bool sized : {true, false}) {
    const byte_vector good = packed(bytes, {sized, true});
    std::size_t unnoticed = 0, checksums = 0;
    for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
      byte_vector bad = good;
      bad[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
      const auto error = caught([&] {
        if (unpacked(bad, 16_MiB) != bytes) ++unnoticed;
      });
      checksums += error.code == ps::errc::checksum ? 1u : 0u;
      const byte_vector plain = packed(bytes, {sized, false});
      if (bit >= plain.size() * 8) continue;
      bad = plain;
      bad[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
      static_cast<void>(failure(bad, 16_MiB));
    }
    CHECK(unnoticed == 0);
    CHECK(checksums > 0);
  }
}

TEST_CASE("codec/zstd: errors say what is wrong and where") {
  using namespace zstd_test;
  const byte_vector good = packed(content(1000, 6), {true, true});
  byte_vector bad = joined(good, codec_test::to_vector("junk"));
  CHECK_THAT(failure(bad).line,
             contains("after the last zstd frame") && contains("offset " + std::to_string(good.size())));
  CHECK_THAT(failure(joined(good, {std::byte{}})).line, contains("after the last zstd frame"));
  CHECK_THAT(failure(codec_test::to_vector("not compressed")).line,
             contains("not a zstd frame") && contains("offset 0"));
  bad = good;
  bad.back() ^= std::byte{1};
  CHECK(failure(bad).code == ps::errc::checksum);
  bad = good;
  bad[4] |= std::byte{8};
  CHECK_THAT(failure(bad).line, contains("reserved"));
  // a frame of one empty block that asks for dictionary 7
  const byte_vector dictionary =
      codec_test::to_vector(std::string_view("\x28\xb5\x2f\xfd\x21\x07\x00\x01\x00\x00", 10));
  CHECK_THAT(failure(dictionary).line, contains("dictionary 7"));
}

TEST_CASE("codec/zstd: random bytes after a valid start do no harm") {
  ps::rng random(8, 8, 8);
  const byte_vector start = zstd_test::packed(zstd_test::content(500, 7));
  for (int round = 0; round < 2000; ++round) {
    byte_vector noise = start;
    noise.resize(4 + random.below(80));
    for (std::size_t i = 4; i < noise.size(); ++i)
      if (random.chance(0.3)) noise[i] = static_cast<std::byte>(random());
    static_cast<void>(zstd_test::failure(noise, 4_MiB));
  }
}

TEST_CASE("codec/zstd: allocates nothing once its scratch has grown") {
  const byte_vector content = zstd_test::content(50'000, 9);
  const byte_vector inputs[] = {zstd_test::packed(content), zstd_test::packed(content, {false})};
  ps::zstd_scratch scratch;
  byte_vector into(content.size());
  const auto samples = [&] {
    for (const byte_vector& input : inputs) {
      const auto blob = ps::zstd{}.decode(input, scratch);
      blob.read_into(into);
      static_cast<void>(blob.finish());
    }
  };
  samples();
  CHECK(penstock_test::allocations_of([&] {
          for (int i = 0; i < 20; ++i) samples();
        }) == 0);
  CHECK(into == content);
}

TEST_CASE("codec/zstd: agrees with the library on real frames") {
  const auto folder = penstock_test::test_data("zstd");
  if (!folder) {
    WARN("PENSTOCK_TEST_DATA has no zstd: real frames are not read");
    return;
  }
  std::size_t read = 0;
  for (const char* const part : {"good", "bad", "libarchive", "fuzz"})
    codec_test::each_file(*folder / part, [&](const std::string& name, const byte_vector& file) {
      CAPTURE(name);
      byte_vector expected(32u << 20);
      const std::size_t size = ZSTD_decompress(expected.data(), expected.size(), file.data(), file.size());
      if (ZSTD_isError(size)) {
        CHECK(!zstd_test::failure(file).line.empty());
        return;
      }
      expected.resize(size);
      if (file.empty()) return;
      CHECK(zstd_test::unpacked(file) == expected);
      ++read;
    });
  CHECK(read > 0);
  codec_test::each_file(*folder / "inputs", [](const std::string& name, const byte_vector& file) {
    CAPTURE(name);
    CHECK(zstd_test::unpacked(zstd_test::packed(file, {true, true, 19})) == file);
    static_cast<void>(zstd_test::failure(file));
  });
}

TEST_CASE("codec/zstd: windows of any size, as zstd --long makes them") {
  // a window of 2^31 bytes, no content size, and one last block, which is stored
  const std::string packed("\x28\xb5\x2f\xfd\x00\xa8\x19\0\0abc", 12);
  ps::zstd::scratch scratch;
  CHECK(ps::text_of(ps::zstd{}.decode(std::string_view(packed), scratch).finish()) == "abc");
}
