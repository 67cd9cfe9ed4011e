// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/audio/segment.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/test_sound.hpp"

namespace audio_segment_test {

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("audio/segment: only the frames of a segment are read, of one channel or of all") {
  const test_sound sound({8'000, 4'000, 2}, 3);
  ps::sound_scratch scratch;
  const auto made = [&](const ps::sound_segment& wanted) {
    return ps::segment_of_sound<test_sound>(sound, wanted, scratch);
  };
  const auto both = made({.offset = 0.5, .duration = 1.0});
  CHECK(both.form() == ps::sound_form{4'000, 4'000, 2});
  CHECK(samples_of(both) == samples_of(sound, {2'000, 4'000}));
  CHECK(sound.parts().front() == ps::sound_part{2'000, 4'000});
  CHECK(parts_agree(both));
  const auto right = made({.offset = 1.75, .channel = 1});
  CHECK(right.form() == ps::sound_form{1'000, 4'000, 1});
  const std::vector<float> end = samples_of(sound, {7'000, 1'000});
  CHECK(samples_of(right) == std::vector<float>(end.begin() + 1'000, end.end()));
  CHECK(parts_agree(right));
  CHECK(made({.duration = 1e-9}).form().frames == 1);
  CHECK(made({.duration = 0.125125}).form().frames == 501);  // 500.5, whose double is a little less
  CHECK(made({.offset = 1.5, .duration = 0.6, .max_overshoot = 0.1}).form().frames == 2'000);
  CHECK_FALSE(sound.read_outside());

  const auto refused = [&](const ps::sound_segment& wanted) { return error_of([&] { (void)made(wanted); }); };
  CHECK_THAT(refused({.offset = 1.5, .duration = 0.6}), contains("ends at 2.1 s, and the sound at 2 s"));
  CHECK_THAT(refused({.offset = 2.0}), contains("begins at 2 s, and the sound ends at 2 s"));
  CHECK_THAT(refused({.channel = 2}), contains("of channel 2, and the sound has 2"));
}

}  // namespace audio_segment_test
