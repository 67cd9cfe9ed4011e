// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/audio.hpp>
#include <penstock/codec/unpack_gzip.hpp>
#include <penstock/penstock.hpp>
#include <penstock/source/lhotse_shar.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/fixtures.hpp"
#include "support/raw_tar.hpp"
#include "support/sound_files.hpp"
#include "support/temp_dir.hpp"

#include <fstream>
#include <map>

namespace lhotse_shar_test {
namespace {

namespace ps = penstock;
using namespace std::chrono_literals;
using penstock_test::contains;
using penstock_test::error_of;

constexpr auto sounds = ps::decode<ps::field<"audio", ps::audio>>;

std::string file_of(int format, std::size_t frames, std::size_t channels = 1) {
  const auto bytes =
      penstock_test::sound_file(format, penstock_test::tones(frames, 8'000, channels), 8'000, channels);
  return std::string(ps::text_of(bytes));
}

/// A folder of Shar that is written shard by shard.
struct shar_folder {
  penstock_test::temp_dir dir;
  std::string path = dir.path().string();

  void cuts(int shard, const std::string& lines) const {
    std::ofstream(dir / ("cuts.00000" + std::to_string(shard) + ".jsonl")) << lines;
  }
  void sounds(int shard, penstock_test::raw_tar& tar, const std::string& field = "recording") const {
    tar.end().save((dir / (field + ".00000" + std::to_string(shard) + ".tar")).string());
  }
};
std::string cut(const std::string& id, double duration, const std::string& more = "") {
  return R"({"id": ")" + id + R"(", "type": "MonoCut", "start": 0, "duration": )" + std::to_string(duration) +
         more + "}\n";
}

}  // namespace

TEST_CASE("source/lhotse_shar: a folder that Lhotse wrote") {
  const std::string folder = penstock_test::fixture("lhotse_shar").string();
  const auto cuts = ps::lhotse_shar<ps::unpack_gzip, "speaker", "topic", "snr">(folder);
  REQUIRE(cuts.size() == 3);
  CHECK_THAT(cuts.describe(), contains("3 utterances"));
  CHECK(cuts.durations()[2] == 50);
  CHECK(cuts.connect().key(1) == "chapter-1/cut.1");
  std::vector<std::string> found;
  for (const auto& one : cuts)
    found.push_back(std::string(get<"text">(one)) + '|' + std::string(get<"speaker">(one)) + '|' +
                    std::string(get<"topic">(one)) + '|' + std::string(get<"snr">(one)));
  CHECK(found == std::vector<std::string>{"|||", R"(part 0 of 1|speaker-1|{"number":1}|1.5)",
                                          R"(part 0 of 2 part 1 of 2|speaker-2|{"number":2}|2.5)"});
  // the function of tools/shar_oracles.py
  const auto sample = [](std::size_t number, std::size_t channel, std::size_t i) {
    const auto value = static_cast<int>((i * 7 + channel * 1000 + number * 333) % 4000) - 2000;
    return static_cast<float>(value) / 32'768;
  };
  std::size_t number = 0;
  for (auto&& batch : (cuts | sounds | ps::fields<"audio"> | ps::batch(1)).epoch(0)) {
    const auto array = get<"audio">(batch)[0];
    const std::size_t first = number == 0 ? 1 : 0, channels = number == 1 ? 2 : 1;
    REQUIRE(array.shape() == ps::extents(channels, 400));
    for (std::size_t c = 0; c < channels; ++c)
      for (std::size_t i = 0; i < 400; ++i)
        if (array(c, i) != sample(number, first + c, 80 + i)) FAIL(number << ", " << c << ", " << i);
    ++number;
  }
  CHECK(number == 3);
  CHECK_THAT(error_of([&] { (void)ps::lhotse_shar<ps::unpack_gzip, "lang">(folder); }),
             contains("no cut has 'lang'"));
  CHECK_THAT(error_of([&] { (void)ps::lhotse_shar(folder); }),
             contains("write lhotse_shar<unpack_gzip>") && contains("cuts.000000.jsonl.gz"));
  CHECK_THAT(error_of([&] { (void)ps::lhotse_shar(folder, {.field = "features"}); }),
             contains("no file 'features.000000.tar'") && contains(folder));
}

TEST_CASE("source/lhotse_shar: several shards, in buckets of durations, and resumed") {
  const shar_folder made;
  std::map<std::string, std::size_t> frames;
  for (int shard = 0; shard < 4; ++shard) {
    std::string lines;
    penstock_test::raw_tar tar;
    for (int i = 0; i < (shard == 2 ? 0 : 10); ++i) {
      const std::string id = std::to_string(shard) + ".a-" + std::to_string(i);
      const std::size_t length = 800 + static_cast<std::size_t>((i * 7 + shard) % 10) * 80;
      lines += cut(id, static_cast<double>(length) / 8'000);
      tar.member("./" + id + (i % 2 == 0 ? ".flac" : ".wav"),
                 file_of(SF_FORMAT_PCM_16 | (i % 2 == 0 ? SF_FORMAT_FLAC : SF_FORMAT_WAV), length))
          .member(id + ".json", "{}");
      frames[id] = length;
    }
    made.cuts(shard, lines);
    made.sounds(shard, tar);
  }
  const auto cuts = ps::lhotse_shar(made.path);
  REQUIRE(cuts.size() == 30);
  REQUIRE(cuts.starts() != nullptr);
  CHECK(*cuts.starts() == std::vector<std::uint64_t>{0, 10, 20, 30});
  const auto plan = cuts | sounds | ps::shuffle(ps::seed(5)) |
                    ps::bucket_by(cuts.durations(), 3, {.max_duration = 500ms}, ps::ragged);
  std::map<std::string, std::size_t> heard;
  std::vector<std::string> rest, again;
  ps::state stand;
  std::size_t steps = 0;
  auto run = (plan | ps::workers(2)).open();
  for (auto&& batch : run.epoch(0)) {
    std::size_t longest = 0;
    for (std::size_t i = 0; i < batch.valid_size(); ++i) {
      longest = std::max(longest, get<"audio">(batch)[i].size());
      heard[batch.keys()[i]] = get<"audio">(batch)[i].size();
      if (steps >= 3) rest.emplace_back(batch.keys()[i]);
    }
    CHECK(longest * batch.valid_size() <= 4'000);
    if (++steps == 3) stand = run.state();
  }
  CHECK(heard == frames);
  auto resumed = (plan | ps::workers(1)).open(stand);
  for (auto&& batch : resumed.epoch(0))
    for (std::size_t i = 0; i < batch.valid_size(); ++i) again.emplace_back(batch.keys()[i]);
  CHECK(again == rest);
}

TEST_CASE("source/lhotse_shar: what is no such folder says what is wrong, and where") {
  const shar_folder made;
  const std::string wav = file_of(SF_FORMAT_WAV | SF_FORMAT_PCM_16, 800, 2);
  const auto sound = [&](const std::string& name, const std::string& field = "recording") {
    made.sounds(0, penstock_test::raw_tar().member(name, wav).member("a.json", "{}"), field);
  };
  const auto refused = [&](const std::string& lines, const ps::lhotse_shar_options& options = {}) {
    made.cuts(0, lines);
    return error_of([&] {
      for (auto&& batch :
           (ps::lhotse_shar(made.path, options) | sounds | ps::fields<"audio"> | ps::batch(1)).epoch(0))
        (void)batch;
    });
  };
  CHECK_THAT(error_of([&] { (void)ps::lhotse_shar(made.path); }), contains("no file 'cuts.000000.jsonl'"));
  CHECK_THAT(error_of([&] { (void)ps::lhotse_shar(made.path + "x"); }), contains("cannot open the folder"));
  sound("a.wav");
  CHECK(refused(cut("a", 0.1)).empty());
  CHECK_THAT(refused(cut("a", 0.2)), contains("ends at 0.2 s, and the sound at 0.1 s") && contains("key a"));
  CHECK(refused(cut("a", 0.2), {.max_overshoot = 0.1}).empty());
  CHECK_THAT(refused(cut("b", 0.1)),
             contains("'b' meets 'a' of 'recording'") && contains("recording.000000.tar"));
  CHECK_THAT(refused(cut("a", 0.1) + cut("b", 0.1)), contains("the cut 'b' has no 'recording'"));
  CHECK_THAT(refused("\n"), contains("'a' of 'recording' is of no cut"));
  CHECK_THAT(refused("\n" + cut("a", -1)),
             contains("\"duration\" is -1") && contains("in line 2") && contains("cuts.000000.jsonl"));
  CHECK_THAT(refused(R"({"id": "a", "type": "MixedCut"})"), contains("is a MixedCut"));
  CHECK_THAT(refused(R"({"type": "MonoCut", "start": 0, "duration": 1})"), contains("no \"id\""));
  CHECK_THAT(refused("{"), contains("JSON") && contains("in line 1"));
  const std::string stereo = R"(, "recording": {"channel_ids": [2, 5]}, "channel": )";
  CHECK(refused(cut("a", 0.1, stereo + "5")).empty());
  CHECK_THAT(refused(cut("a", 0.1, stereo + "1")), contains("none of the recording's"));
  const auto right = ps::lhotse_shar((made.cuts(0, cut("a", 0.1, stereo + "5")), made.path));
  for (auto&& batch : (right | sounds | ps::fields<"audio"> | ps::batch(1)).epoch(0)) {
    CHECK(get<"audio">(batch).shape() == ps::extents(1, 1, 800));
    CHECK(get<"audio">(batch).values()[7] == penstock_test::tones(800, 8'000, 2)[15]);
  }
  sound("a.nodata");
  CHECK_THAT(refused(cut("a", 0.1)), contains("the cut 'a' has no 'recording'"));
  sound("a.wav", "target_recording");
  CHECK(refused(cut("a", 0.1), {.field = "target_recording"}).empty());
  sound("a.llc", "features");
  CHECK_THAT(refused(cut("a", 0.1), {.field = "features"}), contains("lilcom"));
  made.sounds(1, penstock_test::raw_tar().member("a.wav", wav));
  CHECK_THAT(refused(cut("a", 0.1)), contains("1 shards of cuts, and 2 of 'recording'"));
  std::filesystem::remove(made.dir / "recording.000001.tar");
  std::ofstream(made.dir / "recording.000000.tar") << "no archive, and not the beginning of one";
  CHECK_THAT(refused(cut("a", 0.1)), contains("recording.000000.tar"));
}

}  // namespace lhotse_shar_test
