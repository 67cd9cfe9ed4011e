// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/codec/detail/flac_frames.hpp>

#include <penstock/core/random.hpp>
#include <penstock/core/to_size.hpp>

#include "support/catch.hpp"
#include "support/sound_files.hpp"

#include <vector>

namespace codec_flac_frames_test {

namespace ps = penstock;
using namespace penstock_test;

namespace {

/// Samples channel by channel; empty if the file is left to libFLAC.
std::vector<float> read(const byte_vector& file, std::size_t channels, std::size_t frames) {
  ps::buffer room;
  std::vector<float> all(channels * frames);
  const bool read =
      ps::detail::read_flac(file, static_cast<std::uint32_t>(channels), frames, {all.data(), frames}, room);
  return read ? all : std::vector<float>();
}
std::vector<float> planes(const std::vector<float>& interleaved, std::size_t channels) {
  std::vector<float> all(interleaved.size());
  const std::size_t frames = all.size() / channels;
  for (std::size_t i = 0; i < all.size(); ++i) all[i % channels * frames + i / channels] = interleaved[i];
  return all;
}

}  // namespace

TEST_CASE("codec/flac_frames: samples are those that libsndfile reads") {
  for (const std::size_t channels : {1u, 2u, 3u, 8u})
    for (const int format : {SF_FORMAT_PCM_16, SF_FORMAT_PCM_24})
      for (const int kind : {0, 1, 2, 3, 4}) {
        INFO(channels << " channels, " << format << ", " << kind);
        const std::size_t frames = 9'000 + 777 * static_cast<std::size_t>(kind);
        std::vector<float> samples = tones(frames, 16'000, channels);
        ps::rng random(3, 0, 0);
        for (std::size_t i = 0; i < samples.size(); ++i) {
          float& sample = samples[i];
          if (kind == 1) sample = static_cast<float>(random.uniform(-1, 1));
          if (kind == 2) sample = 0.25f;
          if (kind == 3) sample = std::nearbyint(sample * 512) / 512;  // low bits that are all 0
          if (kind == 4 && channels == 2 && i % 2 == 1) sample = samples[i - 1] + sample * 1e-3f;
        }
        const byte_vector file = sound_file(SF_FORMAT_FLAC | format, samples, 16'000, channels);
        const std::vector<float> all = planes(read_all(file), channels);
        REQUIRE(all.size() == samples.size());
        CHECK(read(file, channels, frames) == all);
        const std::vector<float> begin = read(file, channels, 5'000);
        REQUIRE(begin.size() == channels * 5'000);
        CHECK(std::equal(begin.begin(), begin.begin() + 5'000, all.begin()));
        CHECK(read(file, channels, frames + 1).empty());
      }
}

TEST_CASE("codec/flac_frames: what is damaged or unusual is left to libFLAC") {
  const byte_vector file = sound_file(SF_FORMAT_FLAC | SF_FORMAT_PCM_16, tones(9'000, 16'000, 2), 16'000, 2);
  const std::vector<float> all = planes(read_all(file), 2);
  CHECK(read(file, 1, 9'000).empty());
  CHECK(read(sound_file(SF_FORMAT_FLAC | SF_FORMAT_PCM_S8, tones(100, 8'000), 8'000), 1, 100).empty());
  for (std::size_t i = 0; i < 40; ++i) {
    const byte_vector cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(i * file.size() / 40));
    CHECK(read(cut, 2, 9'000).empty());
  }
  std::size_t found = 0;
  ps::rng random(5, 0, 0);
  for (int i = 0; i < 300; ++i) {
    byte_vector damaged = file;
    damaged[ps::detail::to_size(random.below(file.size()))] ^= static_cast<std::byte>(1 + random.below(255));
    const std::vector<float> samples = read(damaged, 2, 9'000);
    found += samples.empty() ? 1 : 0;
    if (!samples.empty()) CHECK(samples == all);  // what lies before the frames does not matter
  }
  CHECK(found > 150);
}

}  // namespace codec_flac_frames_test
