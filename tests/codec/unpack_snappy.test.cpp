// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/unpack_snappy.hpp>

#include "support/catch.hpp"
#include "support/unpack_test.hpp"

#include <snappy.h>

#include <string>

namespace {

using penstock::unpack_snappy;

std::string pack_snappy(const std::string& text) {
  std::string packed;
  snappy::Compress(text.data(), text.size(), &packed);
  return packed;
}

}  // namespace

TEST_CASE("codec/unpack_snappy: in pieces of any size; cut off, damaged, reused") {
  // a letter that is changed is no damage that a block shows
  penstock_test::check_unpacker<unpack_snappy, false, 20>(pack_snappy);
}

TEST_CASE("codec/unpack_snappy: a size that a block cannot have is refused before memory is taken for it") {
  const auto e = penstock_test::unpack_failure<unpack_snappy>(std::string("\xff\xff\xff\xff\x0f\0a", 7));
  REQUIRE(e.has_value());
  CHECK((e->code() == penstock::errc::format));
}
