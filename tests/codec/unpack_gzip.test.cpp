// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/unpack_gzip.hpp>

#include "support/catch.hpp"
#include "support/unpack_test.hpp"

#include <zlib.h>

#include <cstddef>
#include <string>

namespace {

using penstock::unpack_gzip;

std::string pack_gzip(const std::string& text) {
  z_stream z{};
  REQUIRE(::deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
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

TEST_CASE("codec/unpack_gzip: in pieces of any size, stream after stream; cut off, damaged, reused") {
  penstock_test::check_unpacker<unpack_gzip>(pack_gzip);
}

TEST_CASE("codec/unpack_gzip: zeros after the last member are padding, other bytes are not") {
  unpack_gzip::stream stream;
  const std::string packed = pack_gzip("some text");
  CHECK(penstock_test::unpack<unpack_gzip>(stream, packed + std::string(1000, '\0'), 10, 10) == "some text");
  const auto e = penstock_test::unpack_failure<unpack_gzip>(packed + std::string(10, '\0') + "x");
  REQUIRE(e.has_value());
  CHECK_THAT(e->what(), penstock_test::contains("something after the last gzip member"));
}

TEST_CASE("codec/unpack_gzip: content that does not match its checksum") {
  std::string packed = pack_gzip("some text");
  packed[packed.size() - 6] = static_cast<char>(packed[packed.size() - 6] ^ 1);
  const auto e = penstock_test::unpack_failure<unpack_gzip>(packed);
  REQUIRE(e.has_value());
  CHECK((e->code() == penstock::errc::checksum));
}
