// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/sound_segment.hpp>

#include "support/catch.hpp"

TEST_CASE("core/sound_segment: bytes say which segment of a sound they mean") {
  struct utterance {
    [[nodiscard]] static penstock::sound_segment segment() { return {.offset = 1.5}; }
  };
  STATIC_REQUIRE(penstock::bytes_of_segment<utterance>);
  STATIC_REQUIRE_FALSE(penstock::bytes_of_segment<penstock::bytes_view>);
  CHECK(utterance::segment().channel == -1);
}
