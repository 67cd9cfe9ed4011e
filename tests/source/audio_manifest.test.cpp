// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/audio/channels.hpp>
#include <penstock/codec/audio.hpp>
#include <penstock/codec/integer.hpp>
#include <penstock/order/subset.hpp>
#include <penstock/penstock.hpp>
#include <penstock/source/audio_manifest.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/sound_files.hpp"
#include "support/temp_dir.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <stdexcept>

namespace audio_manifest_test {
namespace {

namespace ps = penstock;
using penstock_test::byte_vector;
using penstock_test::contains;
using penstock_test::error_of;

void save(const std::filesystem::path& path, ps::bytes_view bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}
void save(const std::filesystem::path& path, std::string_view text) {
  save(path, std::as_bytes(std::span(text)));
}

/// A folder with a sound of 4 s and one of 2 s, of two channels.
struct speech_folder {
  penstock_test::temp_dir dir;
  std::string path = (dir / "train.jsonl").string();
  std::vector<float> flac, wav;

  speech_folder() {
    const byte_vector one = penstock_test::sound_file(SF_FORMAT_FLAC | SF_FORMAT_PCM_16,
                                                      penstock_test::tones(64'000, 16'000), 16'000);
    const byte_vector two = penstock_test::sound_file(SF_FORMAT_WAV | SF_FORMAT_PCM_16,
                                                      penstock_test::tones(16'000, 8'000, 2), 8'000, 2);
    flac = penstock_test::read_all(one);
    wav = penstock_test::read_all(two);
    save(dir / "a.flac", one);
    std::filesystem::create_directory(dir / "zw\303\266lf");
    save(dir / "zw\303\266lf" / "b b.wav", two);
  }
  void write(std::string_view text) const { save(path, text); }
};

using samples = std::vector<std::vector<float>>;

/// The samples of all sounds, and the texts.
template <class Plan>
std::pair<samples, std::vector<std::string>> heard(const Plan& plan, unsigned workers = 2) {
  samples all;
  std::vector<std::string> texts;
  for (auto&& batch : (plan | ps::workers(workers)).epoch(0))
    for (std::size_t i = 0; i < batch.valid_size(); ++i) {
      const auto values = get<"audio">(batch)[i];
      all.emplace_back(values.begin(), values.end());
      const auto text = get<"text">(batch)[i];
      texts.emplace_back(text.begin(), text.end());
    }
  return {all, texts};
}
std::vector<float> stretch(const std::vector<float>& all, std::size_t first, std::size_t count) {
  return {all.begin() + static_cast<std::ptrdiff_t>(first),
          all.begin() + static_cast<std::ptrdiff_t>(first + count)};
}

constexpr auto sounds = ps::decode<ps::field<"audio", ps::audio>>;

}  // namespace

TEST_CASE("source/audio_manifest: segments of NeMo's manifests are those of the whole sounds") {
  const speech_folder made;
  made.write(
      "\xef\xbb\xbf"
      R"({"audio_filepath": "a.flac", "duration": 1, "text": "one \u00e9\ud83d", "speaker": 7})"
      "\r\n  \r\n\n"
      R"({"audio_filepath": "a.flac", "offset": 1.5, "duration": 0.25, "speaker": "zw\u00f6lf", "snr": NaN})"
      "\r\n"
      R"({"text": "long", "offset": null, "speaker": ["x"], "duration": 2.02, "audio_filepath": ")" +
      (made.dir / "zw\303\266lf" / "b b.wav").string() + "\"}\n" +
      R"({"audio_filepath": "zw\u00f6lf/b b.wav", "offset": 1.0, "duration": 1.0, "speaker": null})");
  const auto speech = ps::audio_manifest<"speaker">(made.path);
  REQUIRE(speech.size() == 4);
  CHECK(speech.seconds() == Approx(4.27));
  CHECK_THAT(speech.describe(), contains("4 utterances of 4 s in 2 files"));

  const auto [found, texts] =
      heard(speech | sounds | ps::map<"audio">(ps::channel(0)) | ps::batch(3, ps::ragged));
  CHECK(texts == std::vector<std::string>{"one \303\251\xef\xbf\xbd", "", "long", ""});
  REQUIRE(found.size() == 4);
  CHECK(found[0] == stretch(made.flac, 0, 16'000));
  CHECK(found[1] == stretch(made.flac, 24'000, 4'000));
  CHECK(found[2].size() == 16'000);  // 20 ms less than the manifest says
  CHECK(found[3] == stretch(found[2], 8'000, 8'000));

  std::vector<std::string> speakers, keys;
  for (const auto& one : speech) speakers.emplace_back(get<"speaker">(one));
  CHECK(speakers == std::vector<std::string>{"7", "zw\303\266lf", R"(["x"])", "null"});
  for (std::uint64_t i = 0; i < 4; ++i) keys.push_back(speech.connect().key(i).substr(made.path.size()));
  CHECK(keys == std::vector<std::string>{":1", ":4", ":5", ":6"});

  const auto lengths = speech.durations();
  CHECK(lengths[1] == 250);
  CHECK(lengths[2] == 2'020);
  CHECK(lengths.dataset() == speech.fingerprint());
  // a sound that no stage asks for is not opened
  std::filesystem::remove(made.dir / "a.flac");
  CHECK(penstock_test::values_of(speech | ps::fields<"duration"> | ps::subset(lengths, ps::at_most(1'000)))
            .size() == 3);
  const std::string gone = error_of([&] { (void)heard(speech | sounds | ps::batch(3, ps::ragged)); });
  CHECK_THAT(gone, contains("cannot open the sound") && contains("a.flac") && contains("train.jsonl:1"));
}

TEST_CASE("source/audio_manifest: buckets and rows of durations, read again from a state") {
  const speech_folder made;
  std::string text;
  for (int i = 0; i < 300; ++i)
    text += "{\"audio_filepath\": \"a.flac\", \"offset\": " + std::to_string(i % 7 * 0.3) +
            ", \"duration\": " + std::to_string(0.1 + i * 37 % 100 * 0.02) + ", \"text\": \"" +
            std::to_string(i) + "\"}\n";
  made.write(text);
  const auto speech = ps::audio_manifest(made.path);
  const auto check = [&](const auto& plan, bool padded) {
    const auto whole = heard(plan, 3);
    CHECK(whole == heard(plan, 0));
    std::set<std::string> seen(whole.second.begin(), whole.second.end());
    CHECK(seen.size() == 300);
    std::size_t steps = 0;
    auto run = (plan | ps::workers(2)).open();
    std::vector<std::string> rest;
    ps::state stand;
    for (auto&& batch : run.epoch(0)) {
      std::uint64_t sum = 0, longest = 0;
      for (std::size_t i = 0; i < batch.valid_size(); ++i) {
        const std::uint64_t size = get<"audio">(batch)[i].size();
        sum += size;
        longest = std::max(longest, size);
        const auto words = get<"text">(batch)[i];
        if (steps >= 5) rest.emplace_back(words.begin(), words.end());
      }
      CHECK((padded ? longest * batch.valid_size() : sum) <= 16u * 6'000);
      if (++steps == 5) stand = run.state();
    }
    REQUIRE(steps > 10);
    std::vector<std::string> again;
    auto resumed = (plan | ps::workers(1)).open(stand);
    for (auto&& batch : resumed.epoch(0))
      for (std::size_t i = 0; i < batch.valid_size(); ++i) {
        const auto words = get<"text">(batch)[i];
        again.emplace_back(words.begin(), words.end());
      }
    CHECK(again == rest);
  };
  using namespace std::chrono_literals;
  const auto mixed = speech | sounds | ps::shuffle(ps::seed(7));
  check(mixed | ps::bucket_by(speech.durations(), 4, {.max_duration = 6s}, ps::ragged), true);
  check(mixed | ps::pack(speech.durations(), 6'000) | ps::batch(1, ps::ragged), false);

  const auto refused = [&](const ps::bucket_options& limits) {
    return error_of([&] { (void)(mixed | ps::bucket_by(speech.durations(), 4, limits, ps::ragged)).open(); });
  };
  CHECK_THAT(refused({.max_tokens = 5, .max_duration = 6s}), contains("write one of both"));
  CHECK_THAT(refused({.max_duration = -6s}), contains("negative"));
  // lengths of another manifest do not fit
  made.write(text + text);
  const auto other = ps::audio_manifest(made.path);
  CHECK_THAT(
      error_of([&] { (void)(other | sounds | ps::batch_by(speech.durations(), 6'000, ps::ragged)).open(); }),
      contains("durations of"));
}

TEST_CASE("source/audio_manifest: what is wrong is said with the manifest and the line") {
  const speech_folder made;
  const auto refused = [&](const std::string& line) {
    made.write(R"({"audio_filepath": "a.flac", "duration": 1})"
               "\n\n" +
               line);
    const std::string said = error_of([&] { (void)ps::audio_manifest(made.path); });
    CHECK_THAT(said, contains("in line 3") && contains(made.path));
    return said;
  };
  CHECK_THAT(refused(R"({"duration": 1})"), contains("no \"audio_filepath\""));
  CHECK_THAT(refused(R"({"audio_filepath": "a.flac"})"), contains("no \"duration\""));
  CHECK_THAT(refused(R"({"audio_filepath": 5, "duration": 1})"), contains("should be a text"));
  CHECK_THAT(refused(R"({"audio_filepath": "", "duration": 1})"), contains("is empty"));
  CHECK_THAT(refused(R"({"audio_filepath": "s3://b/a.flac", "duration": 1})"), contains("is a URL"));
  for (const char* const bad : {"-1", "NaN", "Infinity", "0", "1e300", "\"1\"", "null", "-0.0"})
    CHECK_THAT(refused(std::string(R"({"audio_filepath": "a.flac", "duration": )") + bad + "}"),
               contains("\"duration\""));
  for (const char* const bad : {"-0.5", "NaN", "-Infinity", "true"})
    CHECK_THAT(refused(std::string(R"({"audio_filepath": "a.flac", "duration": 1, "offset": )") + bad + "}"),
               contains("\"offset\""));
  CHECK_THAT(refused(R"({"audio_filepath": "a.flac", "duration": 1, "text": 5})"),
             contains("should be a text"));
  CHECK_THAT(refused(R"({"audio_filepath": "a.flac", "duration": 1)"), contains("JSON"));
  CHECK_THAT(refused("a.flac 1"), contains("JSON"));
  CHECK_THAT(refused("[1]"), contains("not an object"));

  made.write(R"({"audio_filepath": "a.flac", "duration": 1})");
  CHECK_THAT(error_of([&] { (void)ps::audio_manifest<"lang">(made.path); }), contains("no \"lang\""));
  CHECK_THAT(error_of([&] { (void)ps::audio_manifest(made.path + "x"); }), contains("train.jsonlx"));
  made.write(" \n\r\n");
  CHECK_THAT(error_of([&] { (void)ps::audio_manifest(made.path); }), contains("no utterances"));

  const auto unheard = [&](const std::string& line, const ps::audio_manifest_options& options = {}) {
    made.write(line);
    const auto speech = ps::audio_manifest(made.path, options);
    return error_of([&] { (void)heard(speech | sounds | ps::batch(1, ps::ragged)); });
  };
  const std::string beyond = R"({"audio_filepath": "a.flac", "offset": 3.5, "duration": 0.6})";
  CHECK_THAT(unheard(beyond), contains("ends at 4.1 s, and the sound at 4 s") && contains("train.jsonl:1") &&
                                  contains("a.flac"));
  CHECK(unheard(beyond, {.max_overshoot = 0.5}).empty());
  for (const double bad : {-0.1, std::nan(""), 1e300})
    CHECK_THAT(error_of([&] { (void)ps::audio_manifest(made.path, {.max_overshoot = bad}); }),
               contains(".max_overshoot"));
  CHECK_THAT(unheard(R"({"audio_filepath": "a.flac", "offset": 4, "duration": 0.6})"),
             contains("begins at 4 s"));
  CHECK_THAT(unheard(R"({"audio_filepath": "train.jsonl", "duration": 1})"), contains("no sound"));

  // a sound that shrinks while a worker has it mapped
  made.write(R"({"audio_filepath": "a.flac", "duration": 1})");
  const auto speech = ps::audio_manifest(made.path);
  const auto reader = speech.connect();
  decltype(speech)::reader::worker worker;
  const auto look = [&](bool shrink) {
    reader.evaluate({0, 0}, worker, [&](const auto& one) {
      const ps::bytes_view bytes = get<"audio">(one).finish();
      if (!shrink) return;
      std::filesystem::resize_file(made.dir / "a.flac", 0);
      if (bytes.back() == std::byte{0}) throw std::runtime_error("of the zeros");
    });
  };
  look(false);
  CHECK_THAT(error_of([&] { look(true); }), contains("cut off or changed") && contains("train.jsonl:1"));
}

TEST_CASE("source/audio_manifest: a line of a megabyte, several manifests, and more files than stay mapped") {
  const speech_folder made;
  const std::string words(1 << 20, 'x');
  std::vector<std::string> paths;
  for (int m = 0; m < 3; ++m) {
    std::string text;
    for (int i = 0; i < 20; ++i) {
      const std::string name = "copy-" + std::to_string(i) + ".flac";
      if (m == 0) std::filesystem::copy_file(made.dir / "a.flac", made.dir / name);
      text += R"({"audio_filepath": ")" + name + R"(", "duration": 0.5, "text": ")" +
              (i == 0 ? words : name) + "\"}\n";
    }
    paths.push_back((made.dir / ("m" + std::to_string(m) + ".jsonl")).string());
    save(paths.back(), text);
  }
  const auto speech = ps::audio_manifest(paths);
  REQUIRE(speech.size() == 60);
  const auto [found, texts] = heard(speech | sounds | ps::batch(7, ps::ragged));
  CHECK(std::ranges::all_of(found, [&](const auto& one) { return one == stretch(made.flac, 0, 8'000); }));
  CHECK(texts[40] == words);
  CHECK(ps::audio_manifest((made.dir / "m{0..2}.jsonl").string()).fingerprint() == speech.fingerprint());
}

TEST_CASE("source/audio_manifest: data folders of Kaldi") {
  const speech_folder made;
  const std::string folder = made.dir.path().string();
  const auto write = [&](const char* name, std::string_view text) { save(made.dir / name, text); };
  write("wav.scp", "r1 a.flac\nr2\tzw\303\266lf/b b.wav\r\n");
  write("text", "r1 one two\nr2\n");
  const ps::audio_manifest_options here{.root = folder};
  const auto whole = ps::audio_manifest(folder, here);
  CHECK_THAT(error_of([&] { (void)whole.durations()[0]; }), contains("utt2dur"));
  const auto mono = sounds | ps::map<"audio">(ps::channel(0)) | ps::batch(1, ps::ragged);
  CHECK(heard(whole | mono).first[0] == made.flac);
  CHECK(heard(whole | mono).second == std::vector<std::string>{"one two", ""});

  write("utt2dur", "r1 4.0\nr2 2\n");
  CHECK(ps::audio_manifest(folder, here).durations()[1] == 2'000);
  write("segments", " u3 r1 0.5 1.5\nu1 r2 1.5 -1 1\nu2 r2 0 0.25\n");
  write("text", "u1 x\nu2 y\nu3 z\n");
  write("utt2spk", "u1 anna\nu2 bert\nu3 anna\n");
  write("utt2dur", "u1 0.5\nu2 0.25\nu3 1\n");
  const auto speech = ps::audio_manifest<"utt2spk">(folder, here);
  CHECK(speech.connect().key(1) == "u1");
  CHECK(speech.durations()[1] == 500);
  const auto [found, texts] = heard(speech | sounds | ps::batch(2, ps::ragged));
  CHECK(texts == std::vector<std::string>{"z", "x", "y"});
  CHECK(found[0] == stretch(made.flac, 8'000, 16'000));
  REQUIRE(found[1].size() == 4'000);  // the second channel alone
  CHECK(found[1][9] == made.wav[2 * 12'009 + 1]);
  CHECK(found[2].size() == 4'000);  // both
  std::vector<std::string> speakers;
  for (const auto& one : speech) speakers.emplace_back(get<"utt2spk">(one));
  CHECK(speakers == std::vector<std::string>{"anna", "anna", "bert"});

  const auto refused = [&](const char* name, std::string_view text, const std::string& what) {
    const std::filesystem::path path = made.dir / name;
    std::filesystem::rename(path, made.dir / "kept");
    write(name, text);
    const std::string said = error_of([&] { (void)ps::audio_manifest<"utt2spk">(folder, here); });
    CHECK_THAT(said, contains(what) && contains(folder));
    std::filesystem::rename(made.dir / "kept", path);
  };
  refused("wav.scp", "r1 sph2pipe -f wav a.sph |\n", "'sph2pipe -f wav a.sph |', and none is run here");
  refused("wav.scp", "r1 a.ark:52\n", "within an archive of Kaldi");
  refused("wav.scp", "r1 a.flac\nr1 b.flac\n", "'r1' is there twice, in line 2");
  refused("wav.scp", "r1\n", "is empty, in line 1");
  refused("segments", "u1 r9 0 1\n", "'r9' is not in wav.scp, in line 1");
  refused("segments", "u1 r1 1 0.5\n", "the length is -0.5");
  refused("segments", "u1 r1 x 0.5\n", "is 'x', in line 1");
  refused("segments", "u1 r1 0\n", "is ''");
  for (const char* const bad : {"0.5", "nan", "1e300", "3000000000"})
    refused("segments", std::string("u1 r1 0 1 ") + bad + "\n", "the channel should be a whole number");
  refused("utt2dur", "u1 nan\nu2 1\nu3 1\n", "the duration in utt2dur is nan");
  refused("text", "u1 x\n", "'u3' is not in");
  refused("utt2spk", "u1 x\n", "'u3' is not in");
  for (const char* const name : {"text", "utt2dur", "utt2spk"}) refused(name, "", "' is not in ");
  CHECK_THAT(error_of([&] { (void)ps::audio_manifest({folder, folder}, here); }), contains("combine_data"));
  std::filesystem::remove(made.dir / "wav.scp");
  CHECK_THAT(error_of([&] { (void)ps::audio_manifest(folder, here); }), contains("wav.scp"));
}

}  // namespace audio_manifest_test
