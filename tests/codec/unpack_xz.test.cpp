// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/unpack_xz.hpp>

#include "support/catch.hpp"
#include "support/unpack_test.hpp"

#include <lzma.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace {

using penstock::unpack_xz;

std::string pack_xz(const std::string& text) {
  std::string packed(::lzma_stream_buffer_bound(text.size()), '\0');
  std::size_t size = 0;
  REQUIRE(::lzma_easy_buffer_encode(
              3, LZMA_CHECK_CRC32, nullptr, reinterpret_cast<const std::uint8_t*>(text.data()), text.size(),
              reinterpret_cast<std::uint8_t*>(packed.data()), &size, packed.size()) == LZMA_OK);
  packed.resize(size);
  return packed;
}

}  // namespace

TEST_CASE("codec/unpack_xz: in pieces of any size, stream after stream; cut off, damaged, reused") {
  penstock_test::check_unpacker<unpack_xz>(pack_xz);
}

TEST_CASE("codec/unpack_xz: padding between streams, and streams that need too much memory") {
  unpack_xz::stream stream;
  const std::string packed = pack_xz("some text");
  CHECK(penstock_test::unpack<unpack_xz>(stream, packed + std::string(8, '\0') + packed, 3, 10) ==
        "some textsome text");
  CHECK(penstock_test::unpack_failure<unpack_xz>(packed + std::string(3, '\0')).has_value());
  // a dictionary of 1.5 GiB: the header's filter flags say so, and its checksum is right
  lzma_options_lzma options;
  REQUIRE_FALSE(::lzma_lzma_preset(&options, 0));
  options.dict_size = 3u << 29;
  lzma_filter filters[] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, nullptr}};
  std::string large = packed.substr(0, 12);  // the stream header
  lzma_block block{};
  block.check = LZMA_CHECK_CRC32;
  block.compressed_size = block.uncompressed_size = LZMA_VLI_UNKNOWN;
  block.filters = filters;
  REQUIRE(::lzma_block_header_size(&block) == LZMA_OK);
  std::string header(block.header_size, '\0');
  REQUIRE(::lzma_block_header_encode(&block, reinterpret_cast<std::uint8_t*>(header.data())) == LZMA_OK);
  const auto e = penstock_test::unpack_failure<unpack_xz>(large + header + std::string(100, '\0'));
  REQUIRE(e.has_value());
  CHECK((e->code() == penstock::errc::limit));
}
