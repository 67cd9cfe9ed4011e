// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/audio/operation.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <chrono>

namespace audio_operation_test {

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("audio/operation: seconds are numbers with a fraction, or durations") {
  using namespace std::chrono_literals;
  CHECK(ps::detail::seconds_of(1.5, "crop") == 1.5);
  CHECK(ps::detail::seconds_of(0.5f, "crop") == 0.5);
  CHECK(ps::detail::seconds_of(250ms, "crop") == 0.25);
  CHECK(ps::detail::seconds_of(2min, "crop") == 120);
  CHECK(ps::detail::seconds_of(0.0, "crop", true) == 0);
  STATIC_REQUIRE_FALSE(ps::detail::time_span<int>);
  CHECK_THAT(error_of([] { (void)ps::detail::seconds_of(0.0, "pad_to"); }),
             contains("pad_to takes seconds, more than 0 and up to a year, and this is 0"));
  CHECK_THROWS_AS(ps::detail::seconds_of(-1.0, "crop", true), ps::error);
  CHECK_THROWS_AS(ps::detail::seconds_of(std::nan(""), "crop", true), ps::error);
  CHECK_THROWS_AS(ps::detail::seconds_of(1e300, "crop"), ps::error);
}

TEST_CASE("audio/operation: times are rounded to frames, and told to the millisecond") {
  CHECK(ps::detail::frames_in(0.1, 44'100) == 4'410);
  CHECK(ps::detail::frames_in(1.0 / 3, 16'000) == 5'333);
  CHECK(ps::detail::time_text(40'000, 16'000) == "2.5 s");
  CHECK(ps::detail::time_text(1, 3) == "0.333 s");
  CHECK(ps::detail::time_text(5, 0) == "5 frames");
}

}  // namespace audio_operation_test
