// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/audio/mfcc_features.hpp>

#include "support/catch.hpp"
#include "support/count_allocations.hpp"
#include "support/feature_oracles.hpp"

#include <penstock/core/error.hpp>

#include <limits>
#include <span>
#include <string_view>
#include <vector>

namespace mfcc_features_test {

namespace ps = penstock;
using penstock_test::made_sound;

namespace {

std::vector<float> features_of(const ps::mfcc_features& features, std::span<const float> samples) {
  ps::mfcc_features::scratch scratch;
  std::vector<float> made(features.shape(samples.size()).elements());
  features(samples, made, scratch);
  return made;
}

ps::mfcc_options options_of(std::string_view name) {
  if (name == "mfcc_kaldi") {
    auto kaldi = ps::mfcc_options::kaldi();
    kaldi.mel.gain = 32'768;
    return kaldi;
  }
  if (name == "mfcc_log") return {.mel = {.floor = 0, .add = 1e-6, .mels_first = true}, .n_mfcc = 13};
  return ps::mfcc_options::torchaudio();
}

}  // namespace

TEST_CASE("audio/mfcc_features: what torchaudio and its Kaldi functions make") {
  std::size_t compared = 0;
  for (const auto& c : penstock_test::feature_cases) {
    if (!c.options.starts_with("mfcc")) continue;
    CAPTURE(c.options);
    const ps::mfcc_features features(options_of(c.options));
    REQUIRE(features.shape(c.samples) == ps::extents(c.rows, c.columns));
    const float difference =
        penstock_test::largest_difference(features_of(features, made_sound(c.samples, c.seed)), c.expected());
    // Decibels and lifted coefficients are hundreds, in which torchaudio itself is no more exact.
    CHECK(difference < (c.options == "mfcc_log" ? 1e-4f : 5e-4f));
    ++compared;
  }
  CHECK(compared == 3);
}

TEST_CASE("audio/mfcc_features: sounds that are empty, short or silent") {
  for (const auto& o : {ps::mfcc_options::kaldi(), ps::mfcc_options::torchaudio(), ps::mfcc_options{}}) {
    const ps::mfcc_features features(o);
    CHECK(features_of(features, {}).empty());
    CHECK(features_of(features, made_sound(1, 1)).size() == features.frames(1) * o.n_mfcc);
    for (const float value : features_of(features, made_sound(401, 1))) REQUIRE(std::isfinite(value));
    const auto silent = features_of(features, std::vector<float>(400));
    const std::size_t next = o.mel.mels_first ? silent.size() / o.n_mfcc : 1;  // the next coefficient
    CHECK(silent[0] < -20);
    CHECK(std::abs(silent[next]) < 1e-3f);
  }
}

TEST_CASE("audio/mfcc_features: nothing is allocated after a sound as long") {
  const ps::mfcc_features features(ps::mfcc_options::kaldi());
  ps::mfcc_features::scratch scratch;
  std::vector<float> made(features.shape(9000).elements());
  const auto samples = made_sound(9000, 2);
  const auto run = [&](std::size_t size) {
    features(std::span(samples).first(size), std::span(made).first(features.shape(size).elements()), scratch);
  };
  run(9000);
  CHECK(penstock_test::allocations_of([&] {
          for (const std::size_t size : {0u, 1u, 500u, 9000u}) run(size);
        }) == 0);
}

TEST_CASE("audio/mfcc_features: what is refused") {
  const auto refused = [](const ps::mfcc_options& o) {
    try {
      const ps::mfcc_features features(o);
    } catch (const ps::error& e) {
      return e.code() == ps::errc::argument;
    }
    return false;
  };
  CHECK(refused({.n_mfcc = 0}));
  CHECK(refused({.n_mfcc = 129}));
  CHECK(refused({.lifter = -1}));
  CHECK(refused({.lifter = std::numeric_limits<double>::infinity()}));
  CHECK(refused({.mel = {.n_fft = 0}}));
  CHECK_FALSE(refused({.n_mfcc = 128}));
  const ps::mfcc_features features;
  ps::mfcc_features::scratch scratch;
  std::vector<float> room(41);
  CHECK_THROWS_AS(features(std::vector<float>(100), room, scratch), ps::error);
}

}  // namespace mfcc_features_test
