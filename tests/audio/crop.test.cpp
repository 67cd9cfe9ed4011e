// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/audio/crop.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/seed.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/test_sound.hpp"

#include <chrono>
#include <set>
#include <vector>

namespace audio_crop_test {

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("audio/crop: only the frames of a crop are ever read") {
  using namespace std::chrono_literals;
  sound_call call;
  const test_sound sound({8'000, 4'000, 2}, 3);
  const auto part = ps::crop(0.5, 1.0)(sound, call.at(0));
  CHECK(part.form() == ps::sound_form{4'000, 4'000, 2});
  CHECK(sound.parts().empty());
  CHECK(samples_of(part) == samples_of(sound, {2'000, 4'000}));
  CHECK(sound.parts().front() == ps::sound_part{2'000, 4'000});
  CHECK(samples_of(ps::crop(500ms, 1s)(sound, call.at(0))) == samples_of(part));
  CHECK(samples_of(ps::crop(0.25, 0.25)(part, call.at(0))) == samples_of(sound, {3'000, 1'000}));
  CHECK(parts_agree(part));
  CHECK(samples_of(ps::crop(0.0, 2.0)(sound, call.at(0))) == samples_of(sound));
  CHECK_FALSE(sound.read_outside());
}

TEST_CASE("audio/crop: beyond the end, or of no length, is refused") {
  sound_call call;
  const test_sound sound({8'000, 4'000, 1}, 3);
  CHECK_THAT(error_of([&] { (void)ps::crop(1.5, 1.0)(sound, call.at(0)); }),
             contains("a crop of 1 s at 1.5 s from a sound of 2 s; write pad_to(seconds) before it"));
  CHECK_THROWS_AS(ps::crop(0.0, 0.0), ps::error);
  CHECK_THROWS_AS(ps::crop(-0.1, 1.0), ps::error);
  CHECK_THAT(
      error_of([&] { (void)ps::random_crop(2.5)(sound, call.at(0)); }),
      contains("a random crop of 2.5 s from a sound of 2 s; write random_crop(seconds, {.pad_if_needed"));
  CHECK_THROWS_AS(ps::random_crop(0.0), ps::error);
}

TEST_CASE("audio/crop: a random crop is anywhere, and nowhere else") {
  sound_call call;
  const test_sound sound({10, 10, 1}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  std::set<float> begins;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const std::vector<float> samples = samples_of(ps::random_crop(0.6)(sound, call.at(i)));
    REQUIRE(samples.size() == 6);
    CHECK(samples[5] == samples[0] + 5);
    CHECK(samples == samples_of(ps::random_crop(0.6)(sound, call.at(i))));
    begins.insert(samples[0]);
  }
  CHECK(begins == std::set<float>{0, 1, 2, 3, 4});
  CHECK_FALSE(sound.read_outside());
  CHECK(samples_of(ps::random_crop(1.2, {.pad_if_needed = true})(sound, call.at(0))) ==
        std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 0});
}

TEST_CASE("audio/crop: a run draws the same crops for any number of workers") {
  ps::kept_sound kept;
  kept.assign(test_sound({1'000, 1'000, 1}, 9));
  const auto plan = ps::from(first_ints(40)) | ps::map([&](int) { return kept.shown(); }) |
                    ps::map(ps::random_crop(0.1)) | ps::seed(3) | ps::batch(8);
  const auto once = values_of(plan, 1);
  CHECK(once.size() == 4'000);
  CHECK(values_of(plan, 3) == once);
  CHECK(values_of(plan | ps::seed(4), 1) != once);
}

}  // namespace audio_crop_test
