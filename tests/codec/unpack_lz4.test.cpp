// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/unpack_lz4.hpp>

#include "support/catch.hpp"
#include "support/test_data.hpp"
#include "support/unpack_test.hpp"

#include <lz4frame.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace {

using penstock::unpack_lz4;

std::string pack_lz4(const std::string& text) {
  LZ4F_preferences_t preferences{};
  preferences.frameInfo.contentChecksumFlag = LZ4F_contentChecksumEnabled;
  std::string packed(LZ4F_compressFrameBound(text.size(), &preferences), '\0');
  const std::size_t size =
      LZ4F_compressFrame(packed.data(), packed.size(), text.data(), text.size(), &preferences);
  REQUIRE(LZ4F_isError(size) == 0);
  packed.resize(size);
  return packed;
}

}  // namespace

TEST_CASE("codec/unpack_lz4: in pieces of any size, stream after stream; cut off, damaged, reused") {
  penstock_test::check_unpacker<unpack_lz4>(pack_lz4);
}

TEST_CASE("codec/unpack_lz4: skippable frames and checksums") {
  unpack_lz4::stream stream;
  std::string packed = pack_lz4("some text");
  const std::string skippable("\x50\x2a\x4d\x18\2\0\0\0xx", 10);
  CHECK(penstock_test::unpack<unpack_lz4>(stream, skippable + packed + skippable + packed, 3, 10) ==
        "some textsome text");
  packed.back() = static_cast<char>(packed.back() ^ 1);
  const auto e = penstock_test::unpack_failure<unpack_lz4>(packed);
  REQUIRE(e.has_value());
  CHECK((e->code() == penstock::errc::checksum));
}

TEST_CASE("codec/unpack_lz4: a frame without a size is read after one with a size was abandoned or damaged") {
  const std::string sized("\x04\x22\x4d\x18\x68\x40\1\0\0\0\0\0\0\0\x2c", 15);
  for (const std::string& wrong : {sized, sized + std::string("\1\0\0\0a\0\0\0\0", 9)}) {
    unpack_lz4::stream stream;
    CHECK_THROWS_AS(penstock_test::unpack<unpack_lz4>(stream, wrong, 100, 100), penstock::error);
    CHECK(penstock_test::unpack<unpack_lz4>(stream, pack_lz4("some text"), 100, 100) == "some text");
  }
}

TEST_CASE("codec/unpack_lz4: files from other programs are read or refused") {
  const auto root = penstock_test::test_data("lz4");
  if (!root) {
    WARN("PENSTOCK_TEST_DATA is not set: real lz4 files are not read");
    return;
  }
  int read = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(*root)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string packed((std::istreambuf_iterator<char>(in)), {});
    INFO(entry.path().string());
    unpack_lz4::stream stream;
    try {
      read += penstock_test::unpack<unpack_lz4>(stream, packed, 1000, 100'000).empty() ? 0 : 1;
    } catch (const penstock::error& e) {
      CHECK((e.code() == penstock::errc::format || e.code() == penstock::errc::checksum));
    }
  }
  CHECK(read > 3);
}
