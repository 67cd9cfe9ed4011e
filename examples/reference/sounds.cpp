// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sounds from shards to batches: the snippets of docs/audio.md.

#include <penstock/audio.hpp>
#include <penstock/audio/resample.hpp>
#include <penstock/audio/speed.hpp>
#include <penstock/codec/audio.hpp>
#include <penstock/codec/text.hpp>
#include <penstock/inspection/derive.hpp>
#include <penstock/order/subset.hpp>
#include <penstock/penstock.hpp>
#include <penstock/source/audio_manifest.hpp>
#include <penstock/source/shard_writer.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace ps = penstock;

namespace {

void must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "sounds: %s\n", what);
  std::exit(1);
}

/// A wav file of a tone, 16 bits.
std::string tone(std::uint32_t rate, std::uint32_t channels, std::uint32_t frames) {
  const auto little = [](std::uint32_t value, std::size_t bytes) {
    std::string text;
    for (std::size_t i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * i & 0xff);
    return text;
  };
  const std::uint32_t bytes = frames * channels * 2;
  std::string file = "RIFF" + little(36 + bytes, 4) + "WAVEfmt " + little(16, 4) + little(1, 2) +
                     little(channels, 2) + little(rate, 4) + little(rate * channels * 2, 4) +
                     little(channels * 2, 2) + little(16, 2) + "data" + little(bytes, 4);
  for (std::uint32_t i = 0; i < frames; ++i)
    for (std::uint32_t c = 0; c < channels; ++c)
      file +=
          little(static_cast<std::uint32_t>(std::lround(8'000 * std::sin(0.1 * (c + 1) * i))) & 0xffff, 2);
  return file;
}

/// A folder of its own with shards of made-up speech: a sound of 2 s to 4 s, and a text.
class speech {
 public:
  explicit speech(std::uint32_t count)
      : before_(std::filesystem::current_path()), place_(before_ / "made_up_speech") {
    std::filesystem::remove_all(place_);  // left by a killed program
    std::filesystem::create_directories(place_);
    std::filesystem::current_path(place_);
    ps::shard_writer out("speech-%04d.tar", {.maxcount = 16});
    for (std::uint32_t i = 0; i < count; ++i)
      out.write(std::to_string(i), {{"wav", tone(24'000, 1 + i % 2, 48'000 + 1'500 * i)},
                                    {"txt", "utterance " + std::to_string(i)}});
    out.close();
    std::filesystem::create_directory("calls");
    std::ofstream("calls/0.wav", std::ios::binary) << tone(16'000, 2, 16'000 * 30);
    std::ofstream manifest("train.jsonl");
    for (std::uint32_t i = 0; i < 50; ++i)
      manifest << "{\"audio_filepath\": \"calls/0.wav\", \"offset\": " << 0.5 * i
               << ", \"duration\": " << 0.25 * (1 + i % 9) << ", \"text\": \"utterance " << i << "\"}\n";
  }
  speech(const speech&) = delete;
  speech& operator=(const speech&) = delete;
  ~speech() {
    std::error_code ignored;
    std::filesystem::current_path(before_, ignored);
    std::filesystem::remove_all(place_, ignored);
  }

 private:
  std::filesystem::path before_, place_;
};

void slices() {
  auto loader = ps::webdataset("speech-{0000..0001}.tar") |
                ps::decode<ps::field<"wav;flac", ps::audio>, ps::field<"txt", ps::text>> |
                ps::map<"wav">(ps::mono(), ps::resample(16'000), ps::random_crop(1.5)) |
                ps::shuffle(ps::seed(7)) | ps::batch(8, ps::collate<"txt">(ps::ragged));

  std::size_t seen = 0;
  for (auto&& batch : loader.epoch(0)) {
    must(get<"wav">(batch).shape() == ps::extents(8, 1, 24'000), "a batch of slices is one array");
    seen += batch.valid_size();
  }
  must(seen == 32, "all sounds came");
}

void unequal_lengths() {
  auto sounds = ps::webdataset("speech-{0000..0001}.tar") | ps::fields<"wav"> | ps::decode<ps::audio>;
  auto loader = sounds | ps::map<"wav">(ps::channel(0), ps::to_int16()) | ps::batch(8, ps::ragged);
  auto whisper =
      sounds | ps::map<"wav">(ps::mono(), ps::resample(16'000), ps::pad_or_trim(30.0)) | ps::batch(8);

  for (auto&& batch : loader.epoch(0))
    for (std::size_t i = 0; i < batch.valid_size(); ++i)
      must(get<"wav">(batch)[i].size() >= 48'000, "a sound is as long as it is");
  for (auto&& batch : whisper.epoch(0))
    must(get<"wav">(batch).shape() == ps::extents(8, 1, 480'000), "30 s each");
}

void lengths_from_headers() {
  std::filesystem::create_directory("derived");
  const auto sounds = ps::webdataset("speech-{0000..0001}.tar") | ps::fields<"wav"> | ps::decode<ps::audio> |
                      ps::map<"wav">(ps::mono(), ps::resample(16'000));
  const auto frames = ps::derive(
      sounds | ps::map<"wav">(ps::sound_frames), "frames", [](const auto& s) { return ps::get<"wav">(s); },
      "derived");
  auto loader = sounds | ps::map<"wav">(ps::squeeze()) | ps::shuffle(ps::seed(7)) |
                ps::bucket_by(frames, 4, {.max_tokens = 20 * 16'000}, ps::pad_to_longest);
  std::size_t seen = 0;
  for (auto&& batch : loader.epoch(0)) {
    must(get<"wav">(batch).values().size() <= 20 * 16'000, "20 s at most, with padding");
    seen += batch.valid_size();
  }
  must(seen == 32, "all sounds came in buckets");
}

void utterances() {
  using namespace std::chrono_literals;
  auto speech = ps::audio_manifest("train.jsonl");
  auto loader = speech | ps::decode<ps::field<"audio", ps::audio>> |
                ps::map<"audio">(ps::mono(), ps::resample(16'000)) |
                ps::subset(speech.durations(), ps::between(500, 20'000)) | ps::shuffle(ps::seed(7)) |
                ps::bucket_by(speech.durations(), 4, {.max_duration = 10s}, ps::ragged);

  std::size_t seen = 0;
  for (auto&& batch : loader.epoch(0)) {
    std::size_t longest = 0;
    for (std::size_t i = 0; i < batch.valid_size(); ++i)
      longest = std::max(longest, get<"audio">(batch)[i].size());
    must(longest * batch.valid_size() <= 160'000, "a batch has 10 s with padding");
    seen += batch.valid_size();
  }
  must(seen == 44, "utterances of half a second and more came");
}

void augmented() {
  ps::kept_sound hum;
  hum.assign(std::vector<float>(16'000, 0.1f), {.frames = 16'000, .rate = 16'000, .channels = 1});

  auto train = ps::map<"wav">(ps::mono(), ps::resample(16'000), ps::random_speed({0.9, 1.0, 1.1}),
                              ps::random_crop(1.5, {.pad_if_needed = true}), ps::random_gain(-6, 6),
                              ps::add_noise({hum}, 5, 20));

  auto loader = ps::webdataset("speech-{0000..0001}.tar") | ps::fields<"wav"> | ps::decode<ps::audio> |
                train | ps::batch(8);
  std::vector<float> one, three;
  for (const auto& [workers, all] : {std::pair(1u, &one), std::pair(3u, &three)})
    for (auto&& batch : (loader | ps::workers(workers)).epoch(0)) {
      const auto values = get<"wav">(batch).values();
      all->insert(all->end(), values.begin(), values.end());
    }
  must(one == three && one.size() == 32 * 24'000, "the same numbers with any number of workers");
}

}  // namespace

int main() {
  const speech made(32);
  slices();
  unequal_lengths();
  lengths_from_headers();
  utterances();
  augmented();
}
