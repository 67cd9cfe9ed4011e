// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/unpack_brotli.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/unpack_test.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace {

using penstock::unpack_brotli;

/// A stream of blocks that are stored: RFC 7932, section 9.2. The encoder is another library.
std::string stored(std::string_view text) {
  std::string packed;
  unsigned bits = 0, filled = 0;
  const auto put = [&](unsigned value, unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      bits |= (value >> i & 1) << filled;
      if (++filled == 8) {
        packed += static_cast<char>(bits);
        bits = filled = 0;
      }
    }
  };
  const auto align = [&] {
    while (filled != 0) put(0, 1);
  };
  put(0, 1);  // a window of 2^16
  while (!text.empty()) {
    const auto size = static_cast<unsigned>(std::min<std::size_t>(text.size(), 65'536));
    put(0, 1);  // not the last block
    put(0, 2);  // four digits of its size
    put(size - 1, 16);
    put(1, 1);  // stored
    align();
    packed += text.substr(0, size);
    text.remove_prefix(size);
  }
  put(3, 2);  // the last block, empty
  align();
  return packed;
}

}  // namespace

TEST_CASE("codec/unpack_brotli: in pieces of any size; cut off, damaged, reused") {
  // what is stored can be changed without notice
  penstock_test::check_unpacker<unpack_brotli, false, 0>(stored);
}

TEST_CASE("codec/unpack_brotli: what brotli's own encoder writes") {
  // brotli.compress(b"".join(b"sample %d of the dataset, " % i for i in range(60))), brotli 1.0.9 for Python
  const auto packed = codec_test::from_base64(
      "Gw0GAByJcSzJKsbE0wiVroND0gDb6zRLmdmbBJmjI5qcezt8xIzaIvtQe6k2zt49XVdBfk5JApFEptDQ0tGXyO+"
      "A0WS22Nja0Wdsg9Fk"
      "ttjY2tFnaoPRZLbY2NrRZ26D0WS22Nja0Wdpg9FkttjY2s0P");
  std::string text;
  for (int i = 0; i < 60; ++i) text += "sample " + std::to_string(i) + " of the dataset, ";
  const std::string bytes(penstock::text_of(packed));
  unpack_brotli::stream stream;
  CHECK(penstock_test::unpack<unpack_brotli>(stream, bytes, 1000, 10'000) == text);
  CHECK(penstock_test::unpack<unpack_brotli>(stream, bytes, 3, 5) == text);
  int noticed = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x41);
    if (penstock_test::unpack_failure<unpack_brotli>(damaged)) ++noticed;
  }
  CHECK(noticed > 50);
  CHECK(penstock_test::unpack_failure<unpack_brotli>(bytes + "x").has_value());
}
