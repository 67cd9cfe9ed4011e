// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/lz4.hpp>
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

static_assert(ps::codec<ps::lz4>);
static_assert(ps::blob<ps::decoded<ps::lz4, ps::bytes_view>> && ps::byte_element<ps::lz4_bytes>);

namespace lz4_test {

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
  bool block_checksum = false;
  bool linked = true;
  int level = 0;
  LZ4F_blockSizeID_t block = LZ4F_max64KB;
};
byte_vector packed(ps::bytes_view bytes, frame options = {}) {
  LZ4F_preferences_t chosen{};
  chosen.frameInfo.blockSizeID = options.block;
  chosen.frameInfo.blockMode = options.linked ? LZ4F_blockLinked : LZ4F_blockIndependent;
  chosen.frameInfo.contentChecksumFlag =
      options.checksum ? LZ4F_contentChecksumEnabled : LZ4F_noContentChecksum;
  chosen.frameInfo.blockChecksumFlag =
      options.block_checksum ? LZ4F_blockChecksumEnabled : LZ4F_noBlockChecksum;
  chosen.frameInfo.contentSize = options.sized ? bytes.size() : 0;
  chosen.compressionLevel = options.level;
  LZ4F_cctx* made = nullptr;
  REQUIRE(LZ4F_isError(LZ4F_createCompressionContext(&made, LZ4F_VERSION)) == 0);
  const std::unique_ptr<LZ4F_cctx, LZ4F_errorCode_t (*)(LZ4F_cctx*)> context(made,
                                                                             LZ4F_freeCompressionContext);
  byte_vector out(LZ4F_HEADER_SIZE_MAX + LZ4F_compressBound(bytes.size(), &chosen));
  std::size_t size = LZ4F_compressBegin(made, out.data(), out.size(), &chosen);
  REQUIRE(LZ4F_isError(size) == 0);
  for (const bool last : {false, true}) {
    const std::size_t more = last ? LZ4F_compressEnd(made, out.data() + size, out.size() - size, nullptr)
                                  : LZ4F_compressUpdate(made, out.data() + size, out.size() - size,
                                                        bytes.data(), bytes.size(), nullptr);
    REQUIRE(LZ4F_isError(more) == 0);
    size += more;
  }
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
  ps::lz4_scratch scratch;
  const ps::lz4 codec{.limit = limit};
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

}  // namespace lz4_test

TEST_CASE("codec/lz4: decompresses content of every size, with and without a size in the frame") {
  for (const std::size_t size : {0u, 1u, 255u, 4096u, 65535u, 65536u, 65537u, 131073u, 700'000u})
    for (const bool sized : {true, false})
      for (const bool checksum : {true, false})
        for (const bool linked : {true, false})
          for (const int level : {-5, 0, 9}) {
            CAPTURE(size, sized, checksum, linked, level);
            const byte_vector content = lz4_test::content(size, size);
            const auto block = level == 9 ? LZ4F_max256KB : LZ4F_max64KB;
            const byte_vector packed =
                lz4_test::packed(content, {sized, checksum, !checksum, linked, level, block});
            REQUIRE(lz4_test::unpacked(packed) == content);
          }
}

TEST_CASE("codec/lz4: decompresses straight into the destination if the size is known") {
  const byte_vector content = lz4_test::content(100'000, 1);
  const byte_vector packed = lz4_test::packed(content);
  ps::lz4_scratch scratch;
  byte_vector into(content.size());
  CHECK(ps::lz4{}.decode(packed, scratch).size() == content.size());
  ps::lz4{}.decode(packed, scratch).read_into(into);
  CHECK(into == content);
  CHECK(scratch.content.capacity() == 0);
  byte_vector small(content.size() - 1);
  CHECK(caught([&] { ps::lz4{}.decode(packed, scratch).read_into(small); }).code == ps::errc::argument);
}

TEST_CASE("codec/lz4: takes several frames and skips skippable ones") {
  using namespace lz4_test;
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

TEST_CASE("codec/lz4: content beyond the limit is refused, if possible before it is decompressed") {
  using namespace lz4_test;
  const byte_vector zeros(10'000'000);
  for (const bool sized : {true, false}) {
    const byte_vector bomb = packed(zeros, {.sized = sized, .block = LZ4F_max4MB});
    REQUIRE(bomb.size() < 60'000);
    CHECK(unpacked(bomb, zeros.size()) == zeros);
    const auto error = failure(bomb, zeros.size() - 1);
    CHECK(error.code == ps::errc::limit);
    CHECK_THAT(error.line, contains("9999999") && contains("lz4{.limit = ...}"));
    ps::lz4_scratch scratch;
    CHECK(caught([&] { static_cast<void>(ps::lz4{.limit = 1000}.decode(bomb, scratch)); }).code ==
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

TEST_CASE("codec/lz4: a false size is an error and never an overflow") {
  using namespace lz4_test;
  const byte_vector bytes = content(70'000, 3);
  const byte_vector good = packed(bytes);
  for (const std::uint64_t lie :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{69'999}, std::uint64_t{70'001},
        std::uint64_t{131'072}, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    CAPTURE(lie);
    byte_vector bad = good;
    for (std::size_t i = 0; i < 8; ++i) bad[6 + i] = static_cast<std::byte>(lie >> (8 * i));
    CHECK(failure(bad, ~std::uint64_t{0}).code == ps::errc::format);
    if (lie > 131'072) CHECK_THAT(failure(bad).line, contains("its blocks hold at most"));
  }
}

TEST_CASE("codec/lz4: every truncated payload is an error") {
  using namespace lz4_test;
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

TEST_CASE("codec/lz4: with a checksum every flipped bit is noticed, without one it is at least harmless") {
  using namespace lz4_test;
  const byte_vector bytes = content(2000, 5);
  for (const bool sized : {true, false}) {
    const byte_vector good = packed(bytes, {sized, true});
    const byte_vector plain = packed(bytes, {sized, false});
    std::size_t unnoticed = 0, checksums = 0;
    for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
      byte_vector bad = good;
      bad[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
      const auto error = caught([&] {
        if (unpacked(bad, 16_MiB) != bytes) ++unnoticed;
      });
      checksums += error.code == ps::errc::checksum ? 1u : 0u;
      if (bit >= plain.size() * 8) continue;
      bad = plain;
      bad[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
      static_cast<void>(failure(bad, 16_MiB));
    }
    CHECK(unnoticed == 0);
    CHECK(checksums > 0);
  }
}

TEST_CASE("codec/lz4: errors say what is wrong and where") {
  using namespace lz4_test;
  const byte_vector good = packed(content(1000, 6), {true, true});
  CHECK_THAT(failure(joined(good, codec_test::to_vector("junk"))).line,
             contains("after the last lz4 frame") && contains("offset " + std::to_string(good.size())));
  CHECK_THAT(failure(joined(good, {std::byte{}})).line, contains("after the last lz4 frame"));
  CHECK_THAT(failure(codec_test::to_vector("not compressed")).line,
             contains("not an lz4 frame") && contains("offset 0"));
  CHECK_THAT(failure(codec_test::to_vector(std::string_view("\x02\x21\x4c\x18\0\0\0\0", 8))).line,
             contains("legacy"));
  byte_vector bad = good;
  bad.back() ^= std::byte{1};
  CHECK(failure(bad).code == ps::errc::checksum);
  bad = packed(content(1000, 6), {.sized = true, .block_checksum = true});
  bad[bad.size() - 5] ^= std::byte{1};  // before the end mark
  CHECK(failure(bad).code == ps::errc::checksum);
  const auto flipped = [&](std::size_t at, unsigned bits) {
    bad = good;
    bad[at] ^= static_cast<std::byte>(bits);
    return failure(bad).line;
  };
  CHECK_THAT(flipped(4, 0x80), contains("version 3"));
  CHECK_THAT(flipped(4, 2), contains("reserved"));
  CHECK_THAT(flipped(5, 1), contains("reserved"));
  CHECK_THAT(flipped(14, 1), contains("damaged"));  // the checksum of the header
  CHECK_THAT(flipped(18, 0x70), contains("larger than it says"));
  // a frame without blocks that asks for dictionary 7
  CHECK_THAT(
      failure(codec_test::to_vector(std::string_view("\x04\x22\x4d\x18\x61\x40\x07\0\0\0\0\0\0\0\0", 15)))
          .line,
      contains("dictionary 7"));
}

TEST_CASE("codec/lz4: random bytes after a valid start do no harm") {
  ps::rng random(8, 8, 8);
  const byte_vector start = lz4_test::packed(lz4_test::content(500, 7), {.sized = false});
  for (int round = 0; round < 2000; ++round) {
    byte_vector noise = start;
    for (std::size_t i = 7; i < noise.size(); ++i)
      if (random.chance(0.02)) noise[i] = static_cast<std::byte>(random());
    static_cast<void>(lz4_test::failure(noise, 4_MiB));
  }
}

TEST_CASE("codec/lz4: works again after an error, and allocates nothing once its scratch has grown") {
  const byte_vector content = lz4_test::content(150'000, 9);
  // First a frame without a size: here the library would remember how much the damaged frame still
  // wanted.
  const byte_vector inputs[] = {lz4_test::packed(content, {false}), lz4_test::packed(content)};
  byte_vector bad = inputs[1];
  for (std::size_t i = 30; i < 200; ++i) bad[i] = std::byte{0xff};
  ps::lz4_scratch scratch;
  byte_vector into(content.size());
  CHECK(caught([&] { ps::lz4{}.decode(bad, scratch).read_into(into); }).code == ps::errc::format);
  const auto samples = [&] {
    for (const byte_vector& input : inputs) {
      const auto blob = ps::lz4{}.decode(input, scratch);
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

TEST_CASE("codec/lz4: real files of other programs") {
  const auto folder = penstock_test::test_data("lz4");
  if (!folder) {
    WARN("PENSTOCK_TEST_DATA has no lz4: real frames are not read");
    return;
  }
  std::size_t archives = 0;
  codec_test::each_file(*folder, [&](const std::string& name, const byte_vector& file) {
    CAPTURE(name);
    const auto error = caught([&] {
      const byte_vector tar = lz4_test::unpacked(file);
      // tar archives, whose first header has a magic
      CHECK(tar.size() % 512 == 0);
      if (tar.size() >= 512) {
        CHECK(ps::text_of(ps::bytes_view(tar).subspan(257, 5)) == "ustar");
        ++archives;
      }
    });
    if (!error.line.empty()) CHECK_THAT(error.line, contains("legacy") || contains("after the last"));
  });
  CHECK(archives > 0);
}
