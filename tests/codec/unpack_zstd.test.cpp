// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/unpack_zstd.hpp>

#include "support/catch.hpp"
#include "support/unpack_test.hpp"

#include <zstd.h>

#include <cstddef>
#include <string>

namespace {

using penstock::unpack_zstd;

std::string pack_zstd(const std::string& text) {
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  const std::size_t size = ZSTD_compress2(context, packed.data(), packed.size(), text.data(), text.size());
  ZSTD_freeCCtx(context);
  REQUIRE(ZSTD_isError(size) == 0);
  packed.resize(size);
  return packed;
}

}  // namespace

TEST_CASE("codec/unpack_zstd: in pieces of any size, stream after stream; cut off, damaged, reused") {
  penstock_test::check_unpacker<unpack_zstd>(pack_zstd);
}

TEST_CASE("codec/unpack_zstd: skippable frames, checksums, windows that are too large") {
  unpack_zstd::stream stream;
  std::string packed = pack_zstd("some text");
  const std::string skippable("\x50\x2a\x4d\x18\2\0\0\0xx", 10);
  CHECK(penstock_test::unpack<unpack_zstd>(stream, skippable + packed + skippable + packed, 3, 10) ==
        "some textsome text");
  packed.back() = static_cast<char>(packed.back() ^ 1);
  auto e = penstock_test::unpack_failure<unpack_zstd>(packed);
  REQUIRE(e.has_value());
  CHECK((e->code() == penstock::errc::checksum));
  // a window descriptor of 2^30 bytes
  e = penstock_test::unpack_failure<unpack_zstd>(std::string("\x28\xb5\x2f\xfd\x00\xa0\x01\0\0", 9));
  REQUIRE(e.has_value());
  CHECK((e->code() == penstock::errc::limit));
  CHECK_THAT(std::string(e->what()), penstock_test::contains("more than 2^27 bytes, the window_log_max") &&
                                         penstock_test::contains("unpack_zstd_long"));
}

TEST_CASE("codec/unpack_zstd: frames of zstd --long") {
  // a window of 2^28 bytes, no content size, and one last block, which is stored
  const std::string packed("\x28\xb5\x2f\xfd\x00\x90\x19\0\0abc", 12);
  CHECK(penstock_test::unpack_failure<unpack_zstd>(packed).has_value());
  using unpack_28 = penstock::basic_unpack_zstd<28>;
  unpack_28::stream stream;
  CHECK(penstock_test::unpack<unpack_28>(stream, packed, 100, 100) == "abc");
  CHECK(penstock_test::unpack<unpack_28>(stream, packed, 1, 1) == "abc");
  const auto e = penstock_test::unpack_failure<penstock::basic_unpack_zstd<20>>(
      std::string("\x28\xb5\x2f\xfd\x00\x58\x19\0\0abc", 12));  // 2^21
  REQUIRE(e.has_value());
  CHECK_THAT(std::string(e->what()), penstock_test::contains("2^20"));
  static_assert(penstock::unpack_zstd_long::window_log_max == 31 && unpack_zstd::window_log_max == 27);
  static_assert(penstock::unpacker<penstock::unpack_zstd_long>);
}
