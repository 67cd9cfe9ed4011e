// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/stage/pack.hpp>

#include "../../examples/tiny_transformer.hpp"
#include "support/catch.hpp"
#include "support/packed_attention.hpp"

TEST_CASE("changing one document changes no output of another") {
  packed_attention::check_attention<tiny_transformer>();
}
