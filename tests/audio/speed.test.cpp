// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/audio/speed.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/test_sound.hpp"

#include <cmath>
#include <cstdint>
#include <numbers>
#include <set>
#include <vector>

namespace audio_speed_test {

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("audio/speed: a sound is shorter by the factor, and keeps its rate") {
  sound_call call;
  const test_sound sound({16'000, 16'000, 1});
  CHECK(ps::speed(2)(sound, call.at(0)).form() == ps::sound_form{8'000, 16'000, 1});
  CHECK(ps::speed(0.9)(sound, call.at(0)).form() == ps::sound_form{17'778, 16'000, 1});
  CHECK(samples_of(ps::speed(1)(sound, call.at(0))) == samples_of(sound));
  CHECK(samples_of(ps::speed(2)(sound, call.at(0))) == samples_of(ps::resample(8'000)(sound, call.at(0))));
  for (const double factor : {0.9, 1.1, 0.957})
    CHECK(parts_agree(ps::speed(factor)(test_sound({20'000, 16'000, 2}), call.at(0)), 1e-6f));
  CHECK_THROWS_AS(ps::speed(0), ps::error);
  CHECK_THROWS_AS(ps::speed(11), ps::error);
}

TEST_CASE("audio/speed: a tone is higher by the factor") {
  sound_call call;
  std::vector<float> tone(16'000);
  for (std::size_t i = 0; i < tone.size(); ++i)
    tone[i] = static_cast<float>(std::sin(2 * std::numbers::pi * 440 * static_cast<double>(i) / 16'000));
  const std::vector<float> faster =
      samples_of(ps::speed(1.25)(test_sound({16'000, 16'000, 1}, tone), call.at(0)));
  for (std::size_t i = 1'000; i < 11'000; ++i) {
    const auto wanted =
        static_cast<float>(std::sin(2 * std::numbers::pi * 550 * static_cast<double>(i) / 16'000));
    REQUIRE(std::abs(faster[i] - wanted) < 1e-4f);
  }
}

TEST_CASE("audio/speed: random speeds are those that were given") {
  sound_call call;
  const test_sound sound({9'900, 16'000, 1});
  std::set<std::uint64_t> three, many;
  for (std::uint64_t i = 0; i < 300; ++i) {
    three.insert(ps::random_speed({0.9, 1.0, 1.1})(sound, call.at(i)).form().frames);
    many.insert(ps::random_speed(0.9, 1.1)(sound, call.at(i)).form().frames);
  }
  CHECK(three == std::set<std::uint64_t>{9'000, 9'900, 11'000});
  CHECK((*many.begin() >= 9'000 && *many.rbegin() <= 11'000 && many.size() > 100));
  CHECK(ps::random_speed({0.9, 1.0, 1.1}).describe() == "random_speed(0.9, 1, 1.1)");
  CHECK(ps::random_speed(0.9, 1.1).describe() == "random_speed(0.9 to 1.1)");
  CHECK_THROWS_AS(ps::random_speed(1.1, 0.9), ps::error);
  CHECK_THROWS_AS(ps::random_speed({}), ps::error);
  CHECK_THROWS_AS(ps::random_speed({0.0}), ps::error);
}

}  // namespace audio_speed_test
