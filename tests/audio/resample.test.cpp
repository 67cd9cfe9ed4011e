// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/audio/channels.hpp>
#include <penstock/audio/crop.hpp>
#include <penstock/audio/resample.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/keep_in_memory.hpp>
#include <penstock/stage/map.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/test_sound.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace audio_resample_test {

namespace ps = penstock;
using namespace penstock_test;

namespace {

/// What libsoxr makes of a channel as a whole.
std::vector<float> soxr_of(const std::vector<float>& samples, double in, double out, unsigned long recipe) {
  std::vector<float> made(static_cast<std::size_t>(static_cast<double>(samples.size()) * out / in + 0.5) +
                          10);
  const soxr_io_spec_t io = soxr_io_spec(SOXR_FLOAT32_I, SOXR_FLOAT32_I);
  const soxr_quality_spec_t quality = soxr_quality_spec(recipe, 0);
  std::size_t done = 0;
  CHECK(soxr_oneshot(in, out, 1, samples.data(), samples.size(), nullptr, made.data(), made.size(), &done,
                     &io, &quality, nullptr) == nullptr);
  made.resize(done);
  return made;
}
float distance(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  float worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  return worst;
}

}  // namespace

TEST_CASE("audio/resample: the whole is what libsoxr makes of it") {
  sound_call call;
  for (const auto& [in, out] :
       {std::pair{24'000u, 16'000u}, {44'100u, 16'000u}, {8'000u, 16'000u}, {16'000u, 44'100u}}) {
    INFO(in << " to " << out);
    const test_sound sound({20'011, in, 1}, 3);
    const auto fast = ps::resample(out)(sound, call.at(0));
    CHECK(fast.form().rate == out);
    CHECK(distance(samples_of(fast), soxr_of(samples_of(sound), in, out, SOXR_HQ)) <= 1e-6f);
    const auto exact = ps::resample(out, {.quality = ps::resample_quality::very_high})(sound, call.at(0));
    CHECK(distance(samples_of(exact), soxr_of(samples_of(sound), in, out, SOXR_VHQ)) <= 1e-6f);
  }
}

TEST_CASE("audio/resample: a part equals that part of the whole") {
  sound_call call;
  for (const auto& [in, out] : {std::pair{24'000u, 16'000u},
                                {44'100u, 16'000u},
                                {8'000u, 16'000u},
                                {48'000u, 8'000u},
                                {96'000u, 44'100u},
                                {16'000u, 48'000u}}) {
    INFO(in << " to " << out);
    const test_sound sound({40'007, in, 1}, 5);
    const auto made = ps::resample(out)(sound, call.at(0));
    CHECK(parts_agree(made, 1e-6f));
    const std::vector<float> whole = samples_of(made);
    const std::uint64_t n = whole.size();
    for (const std::uint64_t first :
         {std::uint64_t{0}, std::uint64_t{1}, n / 2, n / 2 + 1, n / 3, n - 1, n - 100}) {
      const std::uint64_t frames = std::min<std::uint64_t>(300, n - first);
      const std::vector<float> part = samples_of(made, {first, frames});
      const auto begin = whole.begin() + static_cast<std::ptrdiff_t>(first);
      CHECK(distance(part, {begin, begin + static_cast<std::ptrdiff_t>(frames)}) <= 1e-6f);
    }
    CHECK_FALSE(sound.read_outside());
  }
}

TEST_CASE("audio/resample: a part is made of the frames that it depends on") {
  sound_call call;
  const test_sound sound({2'400'000, 24'000, 1}, 5);
  (void)samples_of(ps::resample(16'000)(sound, call.at(0)), {800'000, 160});
  CHECK(sound.parts().back().first >= 1'200'000 - 1'000);
  CHECK(sound.parts().back().frames <= 240 + 2'000);
}

TEST_CASE("audio/resample: channels by themselves, and a crop after it") {
  sound_call call;
  const test_sound sound({9'000, 24'000, 3}, 5);
  const auto made = ps::resample(16'000)(sound, call.at(0));
  const std::vector<float> all = samples_of(made);
  CHECK(made.form() == ps::sound_form{6'000, 16'000, 3});
  sound_call of_one;
  for (std::size_t c = 0; c < 3; ++c) {
    const auto one = ps::channel(c)(sound, call.at(0));
    const std::vector<float> alone = samples_of(ps::resample(16'000)(one, of_one.at(0)));
    CHECK(distance(alone, {all.begin() + static_cast<std::ptrdiff_t>(c * 6'000),
                           all.begin() + static_cast<std::ptrdiff_t>((c + 1) * 6'000)}) == 0);
  }
  CHECK(parts_agree(ps::crop(0.1, 0.2)(made, call.at(0)), 1e-6f));
}

TEST_CASE("audio/resample: ratios of large numbers, and rates that stay") {
  sound_call call;
  CHECK(parts_agree(ps::resample(16'000)(test_sound({40'000, 16'001, 1}), call.at(0)), 1e-5f));
  const test_sound sound({1'000, 16'000, 2}, 5);
  CHECK(samples_of(ps::resample(16'000)(sound, call.at(0))) == samples_of(sound));
  const auto one = ps::resample(16'000)(test_sound({1, 44'100, 1}), call.at(0));
  CHECK(samples_of(one).size() == one.form().frames);
  CHECK_THROWS_AS(ps::resample(0), ps::error);
  CHECK_THROWS_AS(ps::resample(-16'000), ps::error);
  CHECK_THROWS_AS(ps::resample(1'000'000), ps::error);
}

TEST_CASE("audio/resample: lengths are rounded as libsoxr rounds them") {
  for (const auto& [in, out] : {std::pair{3u, 2u}, {441u, 160u}, {1u, 2u}, {160u, 441u}, {7u, 5u}})
    for (std::size_t n = 1; n < 60; ++n)
      CHECK(ps::detail::rate_ratio::of(in, out).frames(n) ==
            soxr_of(std::vector<float>(n, 0.5f), in, out, SOXR_HQ).size());
}

TEST_CASE("audio/resample: a sound whose parts differ from the whole is not kept at an automatic place") {
  const auto sounds = ps::from({1, 2, 3}) | ps::map([](int seed) {
                        return test_sound({9'000, 44'100, 1}, static_cast<std::uint64_t>(seed));
                      }) |
                      ps::map(ps::resample(16'000));
  const auto part = ps::map(ps::crop(0.1, 0.05));
  const auto expected = values_of(sounds | part | ps::batch(3));
  for (const std::uint32_t place : {1u, 2u, 3u}) {
    INFO(place);
    CHECK((values_of(sounds | ps::keep_in_memory(1 << 20, ps::keep_at{place}) | part | ps::batch(3)) ==
           expected));
  }
}

}  // namespace audio_resample_test
