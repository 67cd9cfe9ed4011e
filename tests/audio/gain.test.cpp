// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/audio/gain.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/test_sound.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

namespace audio_gain_test {

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("audio/gain: decibels are factors") {
  sound_call call;
  const test_sound sound({3, 8'000, 2}, {0.5f, -1, 0.25f, 0, 1, 0.75f});
  CHECK(samples_of(ps::gain(0)(sound, call.at(0))) == samples_of(sound));
  CHECK(samples_of(ps::gain(20)(sound, call.at(0))) == std::vector<float>{5, -10, 2.5f, 0, 10, 7.5f});
  CHECK(samples_of(ps::gain(-6)(sound, call.at(0)), {1, 1})[0] == Approx(-0.501187234));
  CHECK(parts_agree(ps::gain(3)(test_sound({100, 8'000, 2}), call.at(0))));
  CHECK_THROWS_AS(ps::gain(201), ps::error);
  CHECK_THROWS_AS(ps::gain(std::nan("")), ps::error);
}

TEST_CASE("audio/gain: a random gain is within its range, and the same for a sample") {
  sound_call call;
  const test_sound sound({1, 8'000, 1}, std::vector<float>{1});
  std::set<float> seen;
  float lowest = 9, highest = 0;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const float factor = samples_of(ps::random_gain(-6, 6)(sound, call.at(i)))[0];
    CHECK(factor == samples_of(ps::random_gain(-6, 6)(sound, call.at(i)))[0]);
    lowest = std::min(lowest, factor);
    highest = std::max(highest, factor);
    seen.insert(factor);
  }
  CHECK(seen.size() > 190);
  CHECK(lowest >= 0.501f);
  CHECK(lowest < 0.55f);
  CHECK(highest <= 1.996f);
  CHECK(highest > 1.8f);
  CHECK_THAT(error_of([] { (void)ps::random_gain(6, -6); }), contains("takes the lower level first"));
}

}  // namespace audio_gain_test
