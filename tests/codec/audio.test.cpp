// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/codec/audio.hpp>

#include <penstock/audio/crop.hpp>
#include <penstock/audio/resample.hpp>
#include <penstock/audio/to_int16.hpp>
#include <penstock/codec/npy.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/bad_samples.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/collect.hpp"
#include "support/count_allocations.hpp"
#include "support/sound_files.hpp"
#include "support/test_data.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <sys/resource.h>

namespace codec_audio_test {

namespace ps = penstock;
using namespace penstock_test;

namespace {

/// A part of a sound, frame by frame.
std::vector<float> frames_of(const ps::stored_sound& sound, const ps::sound_part& part) {
  const std::size_t channels = sound.form().channels;
  std::vector<float> planes(part.frames * channels), frames(planes.size());
  sound.draw(part, {planes.data(), part.frames});
  for (std::size_t c = 0; c < channels; ++c)
    for (std::size_t i = 0; i < part.frames; ++i) frames[i * channels + c] = planes[c * part.frames + i];
  return frames;
}
std::vector<float> frames_of(const ps::stored_sound& sound) {
  return frames_of(sound, {0, sound.form().frames});
}
float distance(const std::vector<float>& a, const float* b) {
  float worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  return worst;
}

void put_little(byte_vector& file, std::size_t at, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) file[at + i] = static_cast<std::byte>(value >> 8 * i);
}

std::string text_of_file(const byte_vector& file) {
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

codec_test::thrown decoded_whole(const byte_vector& file, const ps::audio& codec = {}) {
  return codec_test::caught([&] {
    ps::audio_scratch scratch;
    (void)codec.decode(ps::bytes_view(file), scratch).finish();
  });
}

}  // namespace

TEST_CASE("codec/audio: any part of any format equals that part of the whole") {
  for (const sound_kind& kind : sound_kinds()) {
    for (const std::size_t channels : {1u, 2u}) {
      INFO(kind.name << ", " << channels << " channels");
      const byte_vector file =
          sound_file(kind.format, tones(kind.rate * 3, kind.rate, channels), kind.rate, channels);
      const std::vector<float> all = read_all(file);
      ps::audio_scratch scratch;
      const ps::stored_sound sound = ps::audio{}.decode(ps::bytes_view(file), scratch);
      const ps::sound_form form = sound.form();
      CHECK(form == ps::sound_form{all.size() / channels, kind.rate, static_cast<std::uint32_t>(channels)});
      CHECK(frames_of(sound) == all);
      const std::uint64_t n = form.frames;
      for (const std::uint64_t first :
           {n / 2, n - 1, std::uint64_t{0}, n / 3 + 7, n - 700, std::uint64_t{1}}) {
        const ps::sound_part part{first, std::min<std::uint64_t>(500, n - first)};
        INFO(first);
        CHECK(distance(frames_of(sound, part), all.data() + first * channels) <= 1e-6f);
      }
      CHECK(frames_of(sound, {5, 0}).empty());
      CHECK_THAT(error_of([&] { (void)frames_of(sound, {n, 1}); }), contains("do not lie within the sound"));
    }
  }
}

TEST_CASE("codec/audio: a sound is decoded again after another one was") {
  const byte_vector a = sound_file(SF_FORMAT_FLAC | SF_FORMAT_PCM_16, tones(5'000, 16'000), 16'000);
  const byte_vector b = sound_file(SF_FORMAT_FLAC | SF_FORMAT_PCM_16, tones(6'000, 8'000), 8'000);
  ps::audio_scratch scratch;
  const ps::stored_sound first = ps::audio{}.decode(ps::bytes_view(a), scratch);
  const ps::stored_sound second = ps::audio{}.decode(ps::bytes_view(b), scratch);
  const std::vector<float> of_a = read_all(a), of_b = read_all(b);
  for (const std::uint64_t at : {100u, 4'000u, 17u}) {
    CHECK(distance(frames_of(first, {at, 900}), of_a.data() + at) == 0);
    CHECK(distance(frames_of(second, {at, 900}), of_b.data() + at) == 0);
  }
}

TEST_CASE("codec/audio: samples of 16 bits are those of the file") {
  const auto folder = test_data("audio/flac");
  if (!folder) {
    WARN("no files: audio/flac");
    return;
  }
  std::size_t compared = 0;
  ps::audio_scratch scratch;
  ps::sound_scratch room;
  codec_test::each_file(*folder, [&](const std::string& name, const byte_vector& file) {
    if (!name.ends_with(".flac")) return;
    INFO(name);
    const byte_vector samples = codec_test::file_bytes(*folder / (name.substr(0, name.size() - 4) + "npy"));
    ps::npy<std::int16_t>::scratch of_npy;
    const auto wanted = ps::npy<std::int16_t>{}.decode(ps::bytes_view(samples), of_npy).finish().values();
    const ps::stored_sound sound = ps::audio{}.decode(ps::bytes_view(file), scratch);
    const ps::call<ps::sound_scratch> call{{}, 0, 0, 0, room};
    const auto array = ps::to_int16()(sound, call);
    const auto found = array.finish();
    CHECK(found.shape() == ps::extents(1, wanted.size()));
    CHECK(std::ranges::equal(found.values(), wanted));
    ++compared;
  });
  CHECK(compared > 0);
}

TEST_CASE("codec/audio: wav and flac of one sound are one sound, and ogg is close") {
  const auto flac = test_data("audio/flac"), other = test_data("audio/other");
  if (!flac || !other) {
    WARN("no files: audio/flac, audio/other");
    return;
  }
  std::size_t compared = 0;
  ps::audio_scratch scratch, of_other;
  codec_test::each_file(*other, [&](const std::string& name, const byte_vector& file) {
    INFO(name);
    const byte_vector same = codec_test::file_bytes(*flac / (name.substr(0, name.size() - 3) + "flac"));
    if (same.empty()) return;
    const ps::stored_sound a = ps::audio{}.decode(ps::bytes_view(same), scratch);
    const ps::stored_sound b = ps::audio{}.decode(ps::bytes_view(file), of_other);
    CHECK(a.form() == b.form());
    const std::vector<float> one = frames_of(a), two = frames_of(b);
    if (name.ends_with(".wav")) {
      CHECK(one == two);
    } else {
      double sum = 0, difference = 0;
      for (std::size_t i = 0; i < one.size(); ++i) {
        sum += static_cast<double>(one[i]) * one[i];
        difference += static_cast<double>(one[i] - two[i]) * (one[i] - two[i]);
      }
      CHECK(difference < 0.1 * sum);
    }
    ++compared;
  });
  CHECK(compared > 0);
}

TEST_CASE("codec/audio: headers that claim too much are refused before anything is allocated") {
  byte_vector wav = sound_file(SF_FORMAT_WAV | SF_FORMAT_PCM_16, tones(2'000, 16'000), 16'000);
  byte_vector flac = sound_file(SF_FORMAT_FLAC | SF_FORMAT_PCM_16, tones(2'000, 16'000), 16'000);
  byte_vector au = sound_file(SF_FORMAT_AU | SF_FORMAT_PCM_16, tones(2'000, 16'000), 16'000);

  byte_vector bad = wav;
  put_little(bad, 24, 0, 4);  // the rate
  CHECK_THAT(decoded_whole(bad).line, contains("1 channels and 0 frames in a second"));
  CHECK(decoded_whole(bad).code == ps::errc::format);
  bad = wav;
  put_little(bad, 24, 2'000'000'000, 4);
  CHECK_THAT(decoded_whole(bad).line,
             contains("2000000000 frames in a second, and the limit is 768000; to allow it, set .limits"));
  CHECK(decoded_whole(bad).code == ps::errc::limit);
  bad = wav;
  put_little(bad, 22, 1'000, 2);  // channels
  put_little(bad, 32, 2'000, 2);  // bytes of a frame
  CHECK_THAT(decoded_whole(bad).line,
             contains("1000 channels, and the limit is 64; to allow it, set .limits"));
  CHECK_THAT(decoded_whole(bad).line, contains("offset 20"));
  CHECK(decoded_whole(bad, {.limits = {.channels = 1'000}}).line.empty());
  bad = wav;
  put_little(bad, 40, 0x7000'0000, 4);  // the bytes of samples
  CHECK_THAT(decoded_whole(bad).line,
             contains("is truncated: its header says 58720.256 s, and it ends at 0.125 s"));
  CHECK_THAT(decoded_whole(bad, {.limits = {.bytes = 10'000}}).line,
             contains("and the limit is 10000 bytes"));
  put_little(bad, 40, 0xffff'ffff, 4);  // as ffmpeg writes it to a pipe
  CHECK(decoded_whole(bad).line.empty());

  bad = flac;
  for (std::size_t i = 22; i < 26; ++i) bad[i] = std::byte{0xff};  // 32 of the 36 bits of the frames
  bad[21] |= std::byte{0x0f};
  CHECK_THAT(decoded_whole(bad).line,
             contains("68719476735 frames of 1 channels, and the limit is 4294967296 bytes"));
  CHECK_THAT(decoded_whole(bad).line, contains("offset 18"));
  bad = flac;
  for (std::size_t i = 22; i < 26; ++i) bad[i] = std::byte{0};
  bad[21] &= std::byte{0xf0};
  CHECK_THAT(decoded_whole(bad).line, contains("does not say how long it is"));
  bad = flac;
  bad[18] = bad[19] = std::byte{0};
  bad[20] &= std::byte{0x0f};  // the rate
  CHECK_THAT(decoded_whole(bad).line, contains("and 0 frames in a second"));

  bad = au;
  for (std::size_t i = 8; i < 12; ++i) bad[i] = std::byte{0xff};  // length not known: all there is
  CHECK(decoded_whole(bad).line.empty());
  for (std::size_t i = 20; i < 24; ++i) bad[i] = std::byte{0x7f};  // channels
  CHECK(decoded_whole(bad).code == ps::errc::format);

  const std::string nothing;
  CHECK_THAT(decoded_whole({}).line, contains("the sound is empty"));
  CHECK_THAT(decoded_whole(codec_test::to_vector(std::string_view("GIF89a........"))).line,
             contains("this is a GIF image, and no sound that libsndfile reads"));
  CHECK_THAT(decoded_whole(codec_test::to_vector(std::string_view("hello, world"))).line,
             contains("this is no sound of a known format"));
}

TEST_CASE("codec/audio: the frames of MP3 that does not say how long it is are counted") {
  byte_vector file = sound_file(SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III, tones(90'000, 16'000), 16'000);
  if (file.empty()) return;  // this libsndfile writes none
  const std::string all(text_of_file(file));
  const std::size_t tag = std::min(all.find("Xing"), all.find("Info"));
  REQUIRE(tag < 64);
  const auto frames = [&](bool recover) {
    ps::audio_scratch scratch;
    return ps::audio{.recover = recover}.decode(file, scratch).form().frames;
  };
  const std::uint64_t said = frames(false);
  put_little(file, tag, 0, 4);
  const std::uint64_t counted = ps::detail::mp3_samples_of(file);
  CHECK(counted % 576 == 0);
  CHECK(counted > said);  // with what the encoder adds, which the tag says
  CHECK(counted < said + 5 * 576);
  // libsndfile takes the bit rate of the beginning for that of all
  const auto failure = decoded_whole(file);
  if (failure.line.empty()) {
    CHECK(frames(false) == counted);
  } else {
    CHECK_THAT(failure.line, contains("has no Xing tag, and changes its bit rate") && contains("of 5."));
    CHECK(decoded_whole(file, {.recover = true}).line.empty());
  }
  CHECK(ps::detail::mp3_frame_of(0xfffb9064).bytes == 417);  // 128 kbit/s at 44.1 kHz
  CHECK(ps::detail::mp3_frame_of(0xfff388c4).bytes == 288);  // 64 kbit/s at 16 kHz
  CHECK(ps::detail::mp3_frame_of(0xfff388c4).samples == 576);
  CHECK(ps::detail::mp3_frame_of(0xfffbf064).bytes == 0);
}

TEST_CASE("codec/audio: bombs are one error, and take little memory") {
  const auto memory = [] {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    return used.ru_maxrss / 1024;
  };
  const auto made = [](int format) { return sound_file(format, tones(9'000, 16'000), 16'000); };
  const byte_vector wav = made(SF_FORMAT_WAV | SF_FORMAT_PCM_16),
                    of_24 = made(SF_FORMAT_WAV | SF_FORMAT_PCM_24),
                    rf64 = made(SF_FORMAT_RF64 | SF_FORMAT_PCM_16),
                    flac = made(SF_FORMAT_FLAC | SF_FORMAT_PCM_16),
                    vorbis = made(SF_FORMAT_OGG | SF_FORMAT_VORBIS),
                    opus = sound_file(SF_FORMAT_OGG | SF_FORMAT_OPUS, tones(9'000, 48'000), 48'000),
                    mp3 = made(SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III),
                    aiff = made(SF_FORMAT_AIFF | SF_FORMAT_PCM_16),
                    caf = made(SF_FORMAT_CAF | SF_FORMAT_PCM_16);
  struct bomb {
    const byte_vector& file;
    std::size_t at;       // in the file, or behind the letters
    std::uint64_t value;  // the lowest byte first
    std::size_t bytes;
    std::string_view letters = "";
    std::string_view error = "has a header that libsndfile cannot read";
  };
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  const auto before = memory();
  for (const bomb& one : std::vector<bomb>{
           {wav, 22, 0, 2, "", "0 channels and 16000 frames in a second"},
           {wav, 22, 65'535, 2, "", "65535 channels, and the limit is 64"},
           {wav, 34, 0, 2},
           {wav, 34, 64, 2},
           {of_24, 22, 65'535, 2, "", "65535 channels, and the limit is 64"},
           {of_24, 24, 0, 4, "", "1 channels and 0 frames in a second"},
           {of_24, 34, 0, 2},
           {of_24, 34, 64, 2},
           {rf64, 28, most, 8, "", "9223372036854775807 frames of 1 channels, and the limit is"},
           {rf64, 28, std::uint64_t{1} << 63, 8, "",
            "4611686018427387904 frames of 1 channels, and the limit is"},
           {flac, 22, 0x00ffff'ff3f, 4, "", "claims 1073741823 frames"},
           {vorbis, 28 + 11, 0, 1},
           {vorbis, 28 + 11, 255, 1, "", "255 channels, and the limit is 64"},
           {vorbis, 28 + 12, 0, 4},
           {opus, 28 + 9, 0, 1},
           {opus, 28 + 9, 255, 1},
           {mp3, 8, most, 4, "Xing", "frames of 1 channels, and the limit is"},
           {mp3, 8, 0x4042'0f00, 4, "Xing", "which cannot hold so many"},
           {aiff, 8, 0, 2, "COMM"},
           {aiff, 8, most, 2, "COMM"},
           {aiff, 14, 0, 2, "COMM"},
           {aiff, 14, 0x4000, 2, "COMM"},
           {caf, 20, 0, 8},
           {caf, 44, 0, 4},
           {caf, 44, most, 4},
           {caf, 48, 0, 4},
           {caf, 48, 0x4000'0000, 4}}) {
    byte_vector file = one.file;
    if (file.empty()) continue;  // which this libsndfile does not write
    const std::size_t from = one.letters.empty() ? 0 : text_of_file(file).find(one.letters);
    REQUIRE(from != std::string::npos);
    put_little(file, from + one.at, one.value, one.bytes);
    if (&one.file == &vorbis || &one.file == &opus) {  // whose first page has a checksum
      put_little(file, 22, 0, 4);
      put_little(file, 22, ps::detail::ogg_crc({file.data(), &one.file == &vorbis ? 58u : 47u}), 4);
    }
    for (const bool recover : {false, true}) {
      const auto failure = decoded_whole(file, {.recover = recover});
      INFO(text_of_file(file).substr(0, 4) << " at " << one.at << ": " << failure.line);
      CHECK_THAT(failure.line, contains(std::string(one.error)) && contains("offset"));
    }
  }
  CHECK(memory() - before < 50);
}

TEST_CASE("codec/audio: a cut file is an error that names the time, or what is left of it") {
  for (const sound_kind& kind : sound_kinds()) {
    const int container = kind.format & SF_FORMAT_TYPEMASK;
    // Their headers tell a length, but libsndfile takes what is there for the whole.
    const bool silent = container == SF_FORMAT_AIFF || container == SF_FORMAT_AU ||
                        container == SF_FORMAT_CAF || container == SF_FORMAT_NIST;
    const std::size_t seconds = container == SF_FORMAT_OGG ? 8 : 1;  // some pages
    const byte_vector file = sound_file(kind.format, tones(seconds * kind.rate, kind.rate), kind.rate);
    const std::vector<float> all = read_all(file);
    std::size_t recovered = 0;
    for (std::size_t i = 0; i < 40; ++i) {
      byte_vector cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(file.size() * i / 40));
      INFO(kind.name << ", " << cut.size() << " of " << file.size() << " bytes");
      const auto failure = decoded_whole(cut);
      if (!silent || !failure.line.empty()) CHECK(failure.code == ps::errc::format);
      if (!silent && i > 4) CHECK_THAT(failure.line, contains(" s") || contains(" frames"));
      // What is there is what was there.
      ps::audio_scratch scratch;
      try {
        const ps::stored_sound sound = ps::audio{.recover = true}.decode(ps::bytes_view(cut), scratch);
        const std::vector<float> left = frames_of(sound);
        REQUIRE(left.size() <= all.size());
        std::size_t same = 0;
        while (same < left.size() && std::abs(left[same] - all[same]) <= 1e-6f) ++same;
        const bool as_it_is = silent || container == SF_FORMAT_WAV || container == SF_FORMAT_WAVEX ||
                              container == SF_FORMAT_RF64;
        CHECK((!as_it_is || same == left.size()));
        CHECK((same + (container == SF_FORMAT_OGG ? 55'000 : 5'000)) * 40 >= all.size() * i);
        ++recovered;
        CHECK(scratch.warnings == (silent ? 0 : 1));
      } catch (const ps::error& e) {
        CHECK(e.code() == ps::errc::format);
      }
    }
    const bool refused = container == SF_FORMAT_CAF || kind.format == (SF_FORMAT_OGG | SF_FORMAT_OPUS);
    if (!refused) CHECK(recovered > 15);
  }
}

TEST_CASE("codec/audio: a damaged page of Ogg is an error, whatever is wanted of the sound") {
  for (const int format : {SF_FORMAT_VORBIS, SF_FORMAT_OPUS}) {
    INFO(format);
    byte_vector file = sound_file(SF_FORMAT_OGG | format, tones(96'000, 48'000), 48'000);
    REQUIRE(decoded_whole(file).line.empty());
    file[file.size() / 2] ^= std::byte{1};
    const codec_test::thrown failure = codec_test::caught([&] {
      ps::audio_scratch scratch;
      (void)frames_of(ps::audio{}.decode(ps::bytes_view(file), scratch), {0, 10});
    });
    CHECK(failure.code == ps::errc::format);
    CHECK_THAT(failure.line,
               contains("sound is damaged: a page is not as it was written") && contains("offset"));
    ps::audio_scratch scratch;
    (void)frames_of(ps::audio{.recover = true}.decode(ps::bytes_view(file), scratch));
    CHECK(scratch.warnings == 1);
  }
}

TEST_CASE("codec/audio: in a run, with crops, each sample is what it is alone") {
  std::vector<std::string> files;
  std::vector<std::vector<float>> wanted;
  for (std::uint32_t i = 0; i < 12; ++i) {
    const byte_vector file = sound_file((i % 2 == 0 ? SF_FORMAT_WAV : SF_FORMAT_FLAC) | SF_FORMAT_PCM_16,
                                        tones(8'000 + 100 * i, 8'000), 8'000);
    files.push_back(text_of_file(file));
    const std::vector<float> all = read_all(file);
    wanted.emplace_back(all.begin() + 2'000, all.begin() + 6'000);
  }
  const auto loader = ps::from(files) | ps::decode<ps::audio> | ps::map(ps::crop(0.25, 0.5)) | ps::batch(4);
  for (const unsigned workers : {1u, 3u}) {
    std::size_t seen = 0;
    for (auto&& batch : (loader | ps::workers(workers)).epoch(0)) {
      const auto values = batch.values();
      CHECK(values.shape() == ps::extents(4, 1, 4'000));
      for (std::size_t i = 0; i < batch.size(); ++i)
        CHECK(std::ranges::equal(values[i].values(), wanted[seen++]));
    }
    CHECK(seen == 12);
  }
}

TEST_CASE("codec/audio: a damaged sound of a run is named, and nothing else is lost") {
  std::vector<std::string> files;
  for (std::uint32_t i = 0; i < 4; ++i)
    files.push_back(text_of_file(sound_file(SF_FORMAT_FLAC | SF_FORMAT_PCM_16, tones(8'000, 8'000), 8'000)));
  files[2].resize(files[2].size() / 2);
  const auto sounds = ps::from(files) | ps::decode<ps::audio>;
  const auto loader = sounds | ps::batch(4);
  CHECK_THAT(error_of([&] { (void)values_of(loader); }),
             contains("the flac sound is truncated or damaged: it ends at ") &&
                 contains(" of 1 s; write audio{") && contains("decode<audio>"));
  std::size_t valid = 0;
  for (auto&& batch : (sounds | ps::bad_samples::skip(4) | ps::batch(4)).epoch(0))
    valid += batch.valid_size();
  CHECK(valid == 3);
}

TEST_CASE("codec/audio: what is left of damaged sounds is counted, each of them once") {
  std::vector<std::string> files;
  for (const int format : {SF_FORMAT_FLAC, SF_FORMAT_WAV, SF_FORMAT_FLAC, SF_FORMAT_WAV})
    files.push_back(text_of_file(sound_file(format | SF_FORMAT_PCM_16, tones(8'000, 8'000), 8'000)));
  files[1].resize(files[1].size() / 2);
  files[2].resize(files[2].size() / 2);
  const auto loader = ps::from(files) | ps::decode<ps::audio>(ps::audio{.recover = true}) |
                      ps::map(ps::pad_to(1.0), ps::crop(0.25, 0.75)) | ps::batch(4);
  for (const unsigned workers : {0u, 2u}) {
    auto run = (loader | ps::workers(workers)).open();
    for (auto&& batch : run.epoch(0)) {
      for (std::size_t i = 0; i < 4; ++i) {
        const auto values = batch.values()[i].values();
        CHECK((values[5'999] == 0) == (i == 1 || i == 2));
        CHECK(values[1] == batch.values()[0].values()[1]);
      }
    }
    CHECK(run.counters().warnings == 2);
  }
}

TEST_CASE("codec/audio: lengths that differ are ragged") {
  std::vector<std::string> files;
  for (std::uint32_t i = 0; i < 3; ++i)
    files.push_back(
        text_of_file(sound_file(SF_FORMAT_WAV | SF_FORMAT_PCM_16, tones(100 + 50 * i, 8'000), 8'000)));
  const auto sounds = ps::from(files) | ps::decode<ps::audio>;
  for (auto&& batch : (sounds | ps::batch(3, ps::ragged)).epoch(0))
    for (std::size_t i = 0; i < 3; ++i) CHECK(batch.values().shape(i) == ps::extents(1, 100 + 50 * i));
  CHECK_FALSE(error_of([&] { (void)values_of(sounds | ps::batch(3)); }).empty());
}

TEST_CASE("codec/audio: seconds of unequal rates make no batch, and resampled ones do") {
  std::vector<std::string> files;
  for (const std::uint32_t rate : {8'000u, 16'000u})
    files.push_back(text_of_file(sound_file(SF_FORMAT_WAV | SF_FORMAT_PCM_16, tones(2 * rate, rate), rate)));
  const auto sounds = ps::from(files) | ps::decode<ps::audio>;
  const std::string refused =
      error_of([&] { (void)values_of(sounds | ps::map(ps::crop(0.5, 1.0)) | ps::batch(2)); });
  CHECK_THAT(refused, contains("(1, 8000)") && contains("(1, 16000)"));
  const auto loader = sounds | ps::map(ps::resample(16'000), ps::crop(0.5, 1.0)) | ps::batch(2);
  CHECK(values_of(loader).size() == 32'000);
}

TEST_CASE("codec/audio: a slice of a resampled file equals that slice of the whole") {
  for (const sound_kind& kind : sound_kinds())
    for (const auto& [in, out] : {std::pair{24'000u, 16'000u}, {44'100u, 16'000u}, {8'000u, 16'000u}}) {
      const bool opus = kind.rate == 48'000, mpeg = (kind.format & SF_FORMAT_TYPEMASK) == SF_FORMAT_MPEG;
      if ((opus && in == 44'100) || (mpeg && in == 8'000)) continue;  // rates that they do not have
      INFO(kind.name << ", " << in << " to " << out);
      const byte_vector file = sound_file(kind.format, tones(in * 2, in), in);
      ps::audio_scratch scratch;
      ps::sound_scratch room;
      const ps::stored_sound sound = ps::audio{}.decode(ps::bytes_view(file), scratch);
      const auto made = ps::resample(out)(sound, ps::call<ps::sound_scratch>{{}, 0, 0, 0, room});
      const std::uint64_t n = made.form().frames;
      std::vector<float> whole(n), part(400);
      made.draw({0, n}, {whole.data(), 0});
      for (const std::uint64_t first : {n / 2, std::uint64_t{0}, n - 400, n / 3 + 1}) {
        made.draw({first, 400}, {part.data(), 0});
        CHECK(distance(part, whole.data() + first) <= 1e-6f);
      }
      made.draw({n - 1, 1}, {part.data(), 0});
      CHECK(std::abs(part[0] - whole[n - 1]) <= 1e-6f);
    }
}

TEST_CASE("codec/audio: nothing is allocated for wav once the scratch has grown") {
  const byte_vector file = sound_file(SF_FORMAT_WAV | SF_FORMAT_PCM_16, tones(9'000, 16'000, 2), 16'000, 2);
  ps::audio_scratch scratch;
  std::vector<float> into(2 * 9'000);
  const auto decode = [&] {
    ps::audio{}.decode(ps::bytes_view(file), scratch).draw({0, 9'000}, {into.data(), 9'000});
  };
  decode();
  CHECK(allocations_of(decode) == 0);
}

}  // namespace codec_audio_test
