// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/codec/components.hpp>

#include <penstock/codec/gzip.hpp>
#include <penstock/codec/jpeg.hpp>
#include <penstock/codec/json.hpp>
#include <penstock/codec/json_field.hpp>
#include <penstock/codec/lz4.hpp>
#include <penstock/codec/npz.hpp>
#include <penstock/codec/png.hpp>
#include <penstock/codec/webp.hpp>
#include <penstock/codec/zstd.hpp>
#include <penstock/stage/decode.hpp>

#include "support/catch.hpp"

namespace ps = penstock;

TEST_CASE("codec/components: what is declared is what the headers define") {
  STATIC_REQUIRE(ps::codec<ps::zstd>);
  STATIC_REQUIRE(ps::codec<ps::gzip>);
  STATIC_REQUIRE(ps::codec<ps::lz4>);
  STATIC_REQUIRE(ps::codec<ps::json>);
  STATIC_REQUIRE(ps::codec<ps::json_field<"a", int>>);
  STATIC_REQUIRE(ps::codec<ps::npz<float>>);
  STATIC_REQUIRE(ps::codec<ps::jpeg>);
  STATIC_REQUIRE(ps::codec<ps::png>);
  STATIC_REQUIRE(ps::codec<ps::webp>);
}
