// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/audio/audio_limits.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <cstdint>

namespace audio_audio_limits_test {

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("audio/audio_limits: each limit names how to raise it") {
  const auto refused = [](const ps::sound_form& form, const ps::audio_limits& limits = {}) {
    return error_of([&] { ps::detail::check_sound_form(form, limits, "wav"); });
  };
  CHECK(refused({1, 1, 1}).empty());
  CHECK(refused({3 * 3'600 * 48'000, 48'000, 2}).empty());
  CHECK_THAT(refused({0, 8'000, 1}), contains("the wav sound has no samples"));
  CHECK_THAT(refused({1, 0, 1}), contains("1 channels and 0 frames in a second"));
  CHECK_THAT(refused({1, 8'000, 0}), contains("0 channels"));
  CHECK_THAT(refused({1, 768'001, 1}), contains("set .limits = {.rate = ...}"));
  CHECK_THAT(refused({1, 8'000, 65}), contains("set .limits = {.channels = ...}"));
  CHECK_THAT(
      refused({std::uint64_t{1} << 63, 8'000, 2}),
      contains("9223372036854775808 frames of 2 channels") && contains("set .limits = {.bytes = ...}"));
  CHECK(refused({10, 8'000, 2}, {.bytes = 80}).empty());
  CHECK_FALSE(refused({11, 8'000, 2}, {.bytes = 80}).empty());
}

}  // namespace audio_audio_limits_test
