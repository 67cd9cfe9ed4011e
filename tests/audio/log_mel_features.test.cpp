// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/audio/log_mel_features.hpp>

#include "support/catch.hpp"
#include "support/count_allocations.hpp"
#include "support/feature_oracles.hpp"

#include <penstock/core/error.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace log_mel_features_test {

namespace ps = penstock;
using penstock_test::largest_difference;
using penstock_test::made_sound;

namespace {

using options = ps::log_mel_options;

std::vector<float> features_of(const ps::log_mel_features& features, std::span<const float> samples) {
  ps::log_mel_features::scratch scratch;
  std::vector<float> made(features.shape(samples.size()).elements());
  features(samples, made, scratch);
  return made;
}

/// Kaldi counts in units of 16 bits.
options loud(options o) {
  o.gain = 32'768;
  return o;
}

const std::map<std::string, options, std::less<>>& named_options() {
  static const options whole{
      .n_fft = 512, .win_length = 400, .hop_length = 160, .n_mels = 64, .f_min = 20, .f_max = 7600};
  static const std::map<std::string, options, std::less<>> all = [] {
    options magnitude = whole, hamming = whole, mirror = loud(options::kaldi());
    magnitude.power = 1;
    hamming.window = ps::frame_window::hamming;
    mirror.edges = ps::frame_edges::mirror;
    return std::map<std::string, options, std::less<>>{
        {"whisper_80", options::whisper()},
        {"whisper_128", options::whisper(128)},
        {"torchaudio", {}},
        {"torchaudio_magnitude", magnitude},
        {"torchaudio_hamming", hamming},
        {"torchaudio_slaney", {.n_mels = 40, .scale = ps::mel_scale::slaney}},
        {"torchaudio_norm", {.n_mels = 40, .slaney_norm = true}},
        {"torchaudio_zeros", {.n_mels = 40, .edges = ps::frame_edges::zeros}},
        {"torchaudio_snip", {.n_mels = 40, .edges = ps::frame_edges::snip}},
        {"odd_375", {.n_fft = 375, .n_mels = 40}},
        {"torchaudio_882", {.sample_rate = 44'100, .n_fft = 882, .n_mels = 40}},
        {"torchaudio_302", {.n_fft = 302, .n_mels = 40}},
        {"torchaudio_1080", {.n_fft = 1080, .n_mels = 40}},
        {"decibels", {.n_mels = 40, .log = ps::mel_log::decibels, .range = 60}},
        {"kaldi", loud(options::kaldi())},
        {"kaldi_80", loud(options::kaldi(80))},
        {"kaldi_8khz", loud(options::kaldi(40, 8000))},
        {"kaldi_mirror", mirror}};
  }();
  return all;
}

}  // namespace

TEST_CASE("audio/log_mel_features: what torchaudio, its Kaldi functions and Whisper make") {
  std::size_t compared = 0;
  for (const auto& c : penstock_test::feature_cases) {
    const auto named = named_options().find(c.options);
    if (named == named_options().end()) continue;  // of another test
    CAPTURE(c.options, c.samples);
    const ps::log_mel_features features(named->second);
    auto samples = made_sound(c.samples, c.seed);
    if (c.options == "decibels") std::fill_n(samples.begin(), 1401, 0.0f);
    REQUIRE(features.shape(c.samples) == ps::extents(c.rows, c.columns));
    // One filter there has 1e-8 of its frame's energy, in which torchaudio itself is 6e-5 from what it makes
    // of `double`.
    const float most = c.options == "kaldi_80" ? 2e-4f : 1e-4f;
    CHECK(largest_difference(features_of(features, samples), c.expected()) < most);
    ++compared;
  }
  CHECK(compared == 19);
}

TEST_CASE("audio/log_mel_features: the shape") {
  CHECK(ps::log_mel_features(options::whisper()).shape(1600) == ps::extents(80, 10));
  CHECK(ps::log_mel_features(options::kaldi()).shape(1600) == ps::extents(8, 23));
}

TEST_CASE("audio/log_mel_features: sounds that are empty, short or silent") {
  for (const auto& [name, o] : named_options()) {
    CAPTURE(name);
    const ps::log_mel_features features(o);
    CHECK(features_of(features, {}).empty());
    for (const std::size_t size : {1u, 2u, 3u, 100u, 187u, 188u, 201u, 399u, 400u, 401u}) {
      for (const float value : features_of(features, made_sound(size, 5))) REQUIRE(std::isfinite(value));
    }
    const std::vector<float> silence(1000);
    const float quiet = features_of(features, silence).front();
    for (const float value : features_of(features, silence)) REQUIRE(value == quiet);
  }
  CHECK(features_of(ps::log_mel_features(options::whisper()), std::vector<float>(160)).front() == -1.5f);
  CHECK(features_of(ps::log_mel_features(options::kaldi()), std::vector<float>(400)).front() ==
        std::log(0x1p-23f));
}

TEST_CASE("audio/log_mel_features: silence beside a loud sound is silent") {
  std::vector<float> samples(4000);
  const auto loud_part = made_sound(2000, 9);
  std::copy(loud_part.begin(), loud_part.end(), samples.begin() + 2000);
  const ps::log_mel_features features({.hop_length = 400, .n_mels = 40});
  const auto made = features_of(features, samples);
  const float quietest = std::log(1e-10f);
  for (std::size_t i = 0; i < 5 * 40; ++i) REQUIRE(made[i] == quietest);  // of five frames
  CHECK(made[6 * 40] > quietest);
}

TEST_CASE("audio/log_mel_features: NaN and infinity stay in their frames") {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const double range : {0.0, 1e3}) {
      auto samples = made_sound(8000, 3);
      const ps::log_mel_features features({.n_mels = 40, .range = range});
      const auto good = features_of(features, samples);
      samples[3100] = bad;  // in the frame that is centred on 3000 and in the one on 3200
      const auto made = features_of(features, samples);
      for (std::size_t frame = 0; frame < 41; ++frame)
        for (std::size_t m = 0; m < 40; ++m) {
          const std::size_t i = frame * 40 + m;
          if (frame == 15 || frame == 16)
            REQUIRE((!std::isfinite(made[i]) || good[i] == std::log(1e-10f)));  // a filter without weights
          else
            REQUIRE(made[i] == good[i]);
        }
    }
  }
}

TEST_CASE("audio/log_mel_features: a frame depends on its samples alone") {
  for (const auto edges : {ps::frame_edges::snip, ps::frame_edges::reflect}) {
    const ps::log_mel_features features({.hop_length = 160, .n_mels = 40, .edges = edges});
    const auto samples = made_sound(160 * 40 + 400, 11);
    const auto whole = features_of(features, samples);
    // of another place among frames computed together
    for (const std::size_t first : {1u, 2u, 3u, 5u, 17u}) {
      const auto part = features_of(features, std::span(samples).subspan(first * 160));
      const std::size_t from = edges == ps::frame_edges::snip ? 0 : 2;  // whose edges are in the sound
      CHECK(std::equal(part.begin() + static_cast<std::ptrdiff_t>(from * 40), part.end(),
                       whole.begin() + static_cast<std::ptrdiff_t>((first + from) * 40)));
    }
  }
}

TEST_CASE("audio/log_mel_features: mels first are the same numbers") {
  options o{.hop_length = 160, .n_mels = 30};
  const auto samples = made_sound(3000, 4);
  const auto rows = features_of(ps::log_mel_features(o), samples);
  o.mels_first = true;
  const auto columns = features_of(ps::log_mel_features(o), samples);
  const std::size_t frames = rows.size() / 30;
  REQUIRE(frames == 19);
  for (std::size_t f = 0; f < frames; ++f)
    for (std::size_t m = 0; m < 30; ++m) REQUIRE(rows[f * 30 + m] == columns[m * frames + f]);
}

TEST_CASE("audio/log_mel_features: energies without a logarithm, and with something added") {
  const auto samples = made_sound(2000, 6);
  options o{.n_mels = 20, .log = ps::mel_log::none, .floor = 0};
  const auto energies = features_of(ps::log_mel_features(o), samples);
  o.add = 0x1p-24;
  o.log = ps::mel_log::natural;
  const auto logs = features_of(ps::log_mel_features(o), samples);
  for (std::size_t i = 0; i < logs.size(); ++i)
    REQUIRE(std::abs(logs[i] - std::log(energies[i] + 0x1p-24f)) < 1e-5f);
}

TEST_CASE("audio/log_mel_features: nothing is allocated after the first sound") {
  for (const auto& [name, o] : named_options()) {
    CAPTURE(name);
    const ps::log_mel_features features(o);
    ps::log_mel_features::scratch scratch;
    std::vector<float> made(features.shape(9000).elements());
    const auto samples = made_sound(9000, 2);
    const auto run = [&](std::size_t size) {
      features(std::span(samples).first(size), std::span(made).first(features.shape(size).elements()),
               scratch);
    };
    run(1000);
    CHECK(penstock_test::allocations_of([&] {
            for (const std::size_t size : {0u, 1u, 500u, 9000u}) run(size);
          }) == 0);
  }
}

TEST_CASE("audio/log_mel_features: threads share one object, and copies are the same") {
  const auto features = [] {
    const ps::log_mel_features made(options::whisper());
    return ps::log_mel_features(made);
  }();
  const auto samples = made_sound(16'000, 8);
  const auto alone = features_of(features, samples);
  std::vector<float> other;
  std::thread second([&] { other = features_of(features, samples); });
  const auto mine = features_of(features, samples);
  second.join();
  CHECK(mine == alone);
  CHECK(other == alone);
}

TEST_CASE("audio/log_mel_features: what is refused") {
  const auto refused = [](const options& o, const std::string& part) {
    try {
      const ps::log_mel_features features(o);
    } catch (const ps::error& e) {
      return e.code() == ps::errc::argument && std::string(e.what()).find(part) != std::string::npos;
    }
    return false;
  };
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(refused({.sample_rate = 0}, "sample_rate"));
  CHECK(refused({.sample_rate = nan}, "sample_rate"));
  CHECK(refused({.n_fft = 1}, "n_fft"));
  CHECK(refused({.n_fft = 0x8000'0000}, "n_fft"));
  CHECK(refused({.n_fft = 2018}, "prime factor"));  // 2 * 1009
  CHECK_FALSE(refused({.n_fft = 1994}, ""));        // 2 * 997
  CHECK(refused({.win_length = 401}, "win_length"));
  CHECK(refused({.win_length = 1}, "win_length"));
  CHECK(refused({.hop_length = 0xffff'ffff}, "hop_length"));
  CHECK(refused({.n_mels = 0}, "n_mels"));
  CHECK(refused({.f_min = 9000}, "f_min"));
  CHECK(refused({.f_min = nan}, "f_min"));
  CHECK(refused({.f_max = 8001}, "f_max"));
  CHECK(refused({.power = 3}, "power"));
  CHECK(refused({.preemphasis = 2}, "preemphasis"));
  CHECK(refused({.floor = 0}, "logarithm"));
  CHECK(refused({.floor = -1}, "floor"));
  CHECK(refused({.gain = nan}, "gain"));
  CHECK_FALSE(refused({.floor = 0, .add = 1e-6}, ""));

  const ps::log_mel_features features;
  ps::log_mel_features::scratch scratch;
  std::vector<float> room(127);
  try {
    features(std::vector<float>(100), room, scratch);
    FAIL("the room is too small");
  } catch (const ps::error& e) {
    CHECK(e.code() == ps::errc::shape);
    CHECK(std::string(e.what()).find("(1, 128)") != std::string::npos);
  }
}

}  // namespace log_mel_features_test
