// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/audio/sound_length.hpp>

#include <penstock/audio/channels.hpp>
#include <penstock/codec/audio.hpp>
#include <penstock/inspection/derive.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/subset.hpp>
#include <penstock/source/directory.hpp>
#include <penstock/stage/bucket_by.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/pack.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/sound_files.hpp"
#include "support/temp_dir.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace audio_sound_length_test {

namespace ps = penstock;
using namespace penstock_test;

namespace {

void write(const std::filesystem::path& path, const byte_vector& file) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
}

}  // namespace

TEST_CASE("audio/sound_length: lengths from headers alone make batches in buckets, and rows") {
  const temp_dir folder, derived;
  for (std::size_t i = 0; i < 12; ++i)
    write(folder / (std::to_string(10 + i) + ".flac"),
          sound_file(SF_FORMAT_FLAC | SF_FORMAT_PCM_16, tones(100 + 50 * i, 8'000), 8'000));
  const auto sounds = ps::directory(folder.path().string()) | ps::fields<"bytes"> | ps::decode<ps::audio>;
  const auto length = [](const auto& s) { return ps::get<"bytes">(s); };
  const auto frames =
      ps::derive(sounds | ps::map<"bytes">(ps::sound_frames), "frames", length, derived.path().string());
  REQUIRE(frames.size() == 12);
  for (std::size_t i = 0; i < 12; ++i) CHECK(frames[i] == 100 + 50 * i);
  const auto seconds =
      ps::derive(sounds | ps::map<"bytes">(ps::sound_seconds), "seconds", length, derived.path().string());
  CHECK(seconds[3] == 250 / 8e3);
  CHECK((sounds | ps::subset(seconds, ps::between(0.02, 0.04)) | ps::batch(1)).open().steps_per_epoch() == 3);

  const auto samples = sounds | ps::map<"bytes">(ps::squeeze());
  std::uint64_t seen = 0;
  for (auto&& batch : (samples | ps::shuffle(ps::seed(7)) |
                       ps::bucket_by(frames, {200, 400}, {.max_tokens = 1'600}, ps::pad_to_longest))
                          .epoch(0)) {
    const auto padded = ps::get<"bytes">(batch);
    CHECK(padded.shape().elements() <= 1'600);
    for (std::size_t i = 0; i < padded.size(); ++i) {
      const std::uint64_t n = frames[std::stoul(batch.keys()[i]) - 10];
      CHECK(padded.lengths()[i] == n);
      const auto wanted = tones(n, 8'000);
      CHECK(std::ranges::equal(padded[i], wanted));
      ++seen;
    }
  }
  CHECK(seen == 12);
  std::uint64_t packed = 0;
  for (auto&& batch : (samples | ps::pack<"bytes">(frames, 1'000) | ps::batch(2)).epoch(0)) {
    const auto rows = ps::get<"bytes">(batch);
    CHECK(rows.shape() == ps::extents(batch.size(), 1'000));
    packed += rows.documents().size();
  }
  CHECK(packed >= 12);
}

TEST_CASE("audio/sound_length: no sample is decoded") {
  const temp_dir folder, derived;
  byte_vector file = sound_file(SF_FORMAT_FLAC | SF_FORMAT_PCM_16, tones(9'000, 16'000), 16'000);
  file.resize(file.size() / 2);
  write(folder / "cut.flac", file);
  const auto sounds = ps::directory(folder.path().string()) | ps::fields<"bytes"> | ps::decode<ps::audio>;
  const auto frames = ps::derive(
      sounds | ps::map<"bytes">(ps::sound_frames), "frames",
      [](const auto& s) { return ps::get<"bytes">(s); }, derived.path().string());
  CHECK(frames[0] == 9'000);
  auto loader = sounds | ps::batch(1);
  const auto decode_all = [&] {
    for (auto&& batch : loader.epoch(0)) CHECK(batch.size() == 0);
  };
  CHECK_THAT(error_of(decode_all), contains("truncated"));
}

}  // namespace audio_sound_length_test
