// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/audio/add_noise.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/test_sound.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

namespace audio_add_noise_test {

namespace ps = penstock;
using namespace penstock_test;

namespace {

ps::kept_sound noise_of(const ps::sound_form& form, std::uint64_t seed) {
  ps::kept_sound made;
  made.assign(test_sound(form, seed));
  return made;
}
double energy(const std::vector<float>& samples) {
  return ps::detail::energy_of(samples.data(), samples.size());
}
std::vector<float> difference(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> result(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) result[i] = a[i] - b[i];
  return result;
}

}  // namespace

TEST_CASE("audio/add_noise: the noise is by so many decibels below the sound") {
  sound_call call;
  for (const std::uint32_t channels : {1u, 2u}) {
    const test_sound sound({5'000, 8'000, channels}, 3);
    for (const double snr : {0.0, 10.0, -5.0}) {
      const auto operation = ps::add_noise({noise_of({700, 8'000, 1}, 4)}, snr);
      const auto noisy = operation(sound, call.at(1));
      const std::vector<float> noise = difference(samples_of(noisy), samples_of(sound));
      CHECK(10 * std::log10(energy(samples_of(sound)) / energy(noise)) == Approx(snr).margin(1e-3));
      CHECK(parts_agree(noisy));
    }
  }
}

TEST_CASE("audio/add_noise: a noise is drawn with its place, and begins again at its end") {
  sound_call call;
  const test_sound sound({4, 8'000, 1}, {1, 1, 1, 1});
  ps::kept_sound steps;
  steps.assign({1, 2, 3}, {3, 8'000, 1});
  std::set<int> firsts;
  for (std::uint64_t i = 0; i < 50; ++i) {
    const std::vector<float> noise =
        difference(samples_of(ps::add_noise({steps}, 0)(sound, call.at(i))), samples_of(sound));
    CHECK(noise[3] == Approx(noise[0]).epsilon(1e-5));
    const float smallest = *std::min_element(noise.begin(), noise.end());
    CHECK(noise[1] / smallest == Approx(static_cast<int>(noise[0] / smallest + 0.5f) % 3 + 1).epsilon(1e-5));
    firsts.insert(static_cast<int>(noise[0] / smallest + 0.5f));
  }
  CHECK(firsts == std::set<int>{1, 2, 3});
  std::set<float> levels;
  for (std::uint64_t i = 0; i < 20; ++i)
    levels.insert(samples_of(ps::add_noise({steps}, 0, 20)(sound, call.at(i)))[0]);
  CHECK(levels.size() == 20);
}

TEST_CASE("audio/add_noise: silence stays, and what does not fit is refused") {
  sound_call call;
  const test_sound silence({4, 8'000, 1}, {0, 0, 0, 0});
  CHECK(samples_of(ps::add_noise({noise_of({10, 8'000, 1}, 1)}, 3)(silence, call.at(0))) ==
        samples_of(silence));
  ps::kept_sound quiet;
  quiet.assign({0, 0}, {2, 8'000, 1});
  const test_sound sound({4, 8'000, 3});
  CHECK(samples_of(ps::add_noise({quiet}, 3)(sound, call.at(0))) == samples_of(sound));
  CHECK_THAT(error_of([&] {
               (void)ps::add_noise({noise_of({10, 16'000, 1}, 1)}, 3)(sound, call.at(0));
             }),
             contains("the sound has 8000 frames in a second, and noise 0 has 16000; resample one of them"));
  CHECK_THAT(error_of([&] {
               (void)ps::add_noise({noise_of({10, 8'000, 2}, 1)}, 3)(sound, call.at(0));
             }),
             contains("the sound has 3 channels, and noise 0 has 2; use noises of one channel"));
  CHECK_THROWS_AS(ps::add_noise({}, 3), ps::error);
  CHECK_THROWS_AS(ps::add_noise({ps::kept_sound{}}, 3), ps::error);
  CHECK_THROWS_AS(ps::add_noise({quiet}, 20, 5), ps::error);
}

}  // namespace audio_add_noise_test
