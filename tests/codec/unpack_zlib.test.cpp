// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/unpack_zlib.hpp>

#include "support/catch.hpp"
#include "support/unpack_test.hpp"

#include <zlib.h>

#include <cstddef>
#include <string>

namespace {

using penstock::unpack_zlib;

std::string pack_zlib(const std::string& text) {
  z_stream z{};
  REQUIRE(::deflateInit2(&z, 6, Z_DEFLATED, 15, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string packed(::deflateBound(&z, text.size()) + 64, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(packed.data());
  z.avail_out = static_cast<uInt>(packed.size());
  REQUIRE(::deflate(&z, Z_FINISH) == Z_STREAM_END);
  packed.resize(packed.size() - z.avail_out);
  ::deflateEnd(&z);
  return packed;
}

}  // namespace

TEST_CASE("codec/unpack_zlib: in pieces of any size, cut off, damaged, reused") {
  penstock_test::check_unpacker<unpack_zlib, false>(pack_zlib);
}

TEST_CASE("codec/unpack_zlib: bytes after the stream, and a stream with a dictionary, are refused") {
  const std::string packed = pack_zlib("some text");
  for (const char more : {'x', '\0'}) {
    const auto e = penstock_test::unpack_failure<unpack_zlib>(packed + more);
    REQUIRE(e.has_value());
    CHECK_THAT(e->what(), penstock_test::contains("there is something after the zlib stream"));
  }
  const auto e = penstock_test::unpack_failure<unpack_zlib>("\x78\xbb" + packed);
  REQUIRE(e.has_value());
  CHECK_THAT(e->what(), penstock_test::contains("the zlib stream is damaged: it needs a dictionary"));
}

TEST_CASE("codec/unpack_zlib: content that does not match its checksum") {
  std::string packed = pack_zlib("some text");
  packed[packed.size() - 2] = static_cast<char>(packed[packed.size() - 2] ^ 1);
  const auto e = penstock_test::unpack_failure<unpack_zlib>(packed);
  REQUIRE(e.has_value());
  CHECK((e->code() == penstock::errc::checksum));
}
