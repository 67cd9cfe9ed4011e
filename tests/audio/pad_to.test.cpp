// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/audio/pad_to.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/test_sound.hpp"

#include <vector>

namespace audio_pad_to_test {

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("audio/pad_to: silence at the end of short sounds, and long ones stay") {
  sound_call call;
  const test_sound sound({3, 10, 2}, {1, 2, 3, 4, 5, 6});
  const auto longer = ps::pad_to(0.5)(sound, call.at(0));
  CHECK(longer.form() == ps::sound_form{5, 10, 2});
  CHECK(samples_of(longer) == std::vector<float>{1, 2, 3, 0, 0, 4, 5, 6, 0, 0});
  CHECK(samples_of(longer, {2, 2}) == std::vector<float>{3, 0, 6, 0});
  CHECK(samples_of(longer, {3, 2}) == std::vector<float>{0, 0, 0, 0});
  CHECK(samples_of(ps::pad_to(0.5, {.value = -1})(sound, call.at(0)), {3, 1}) == std::vector<float>{-1, -1});
  CHECK(samples_of(ps::pad_to(0.2)(sound, call.at(0))) == samples_of(sound));
  CHECK(parts_agree(ps::pad_to(20.0)(test_sound({100, 10, 2}), call.at(0))));
  CHECK_FALSE(sound.read_outside());
  CHECK_THROWS_AS(ps::pad_to(0.0), ps::error);
}

TEST_CASE("audio/pad_to: pad_or_trim makes one length of all") {
  sound_call call;
  const test_sound sound({3, 10, 1}, {1, 2, 3});
  CHECK(samples_of(ps::pad_or_trim(0.2)(sound, call.at(0))) == std::vector<float>{1, 2});
  CHECK(sound.parts().back() == ps::sound_part{0, 2});
  CHECK(samples_of(ps::pad_or_trim(0.4)(sound, call.at(0))) == std::vector<float>{1, 2, 3, 0});
  CHECK_THROWS_AS(ps::pad_or_trim(-1.0), ps::error);
}

}  // namespace audio_pad_to_test
