// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/unpack_bzip2.hpp>

#include "support/catch.hpp"
#include "support/unpack_test.hpp"

#include <bzlib.h>

#include <cstddef>
#include <string>

namespace {

using penstock::unpack_bzip2;

std::string pack_bzip2(const std::string& text) {
  std::string packed(text.size() + text.size() / 100 + 700, '\0');
  auto size = static_cast<unsigned>(packed.size());
  REQUIRE(::BZ2_bzBuffToBuffCompress(packed.data(), &size, const_cast<char*>(text.data()),
                                     static_cast<unsigned>(text.size()), 9, 0, 0) == BZ_OK);
  packed.resize(size);
  return packed;
}

}  // namespace

TEST_CASE("codec/unpack_bzip2: in pieces of any size, stream after stream; cut off, damaged, reused") {
  penstock_test::check_unpacker<unpack_bzip2>(pack_bzip2);
}
