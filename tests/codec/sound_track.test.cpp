// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/audio/channels.hpp>
#include <penstock/codec/sound_track.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/seed.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/video/clip.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/film.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace ps = penstock;
using codec_test::byte_vector;
using codec_test::caught;
using codec_test::file_bytes;
using penstock_test::temp_dir;

static_assert(ps::codec<ps::sound_track> && ps::lazy_sound<ps::film_sound>);

namespace sound_track_test {
namespace {

/// Pictures of a number each, 25 in a second, and noise with a tone in stereo.
penstock_test::film_kind film_with(const std::string& name, const std::string& options,
                                   const std::string& filter = "anull") {
  return {name,
          "",
          "-filter_complex \"[1][2]amerge=2," + filter +
              "[a]\" -map 0:v -map \"[a]\" -c:v mpeg4 -g 10 -bf 2 " + options,
          0,
          160,
          96,
          "-f lavfi -i testsrc2=s=160x96:r=25:d=6 -f lavfi -i anoisesrc=d=6:c=pink:a=0.3:r=44100:seed=7 "
          "-f lavfi -i sine=f=440:d=6:r=44100"};
}

/// Frame by frame, as the program ffmpeg writes it.
std::vector<float> sound_by_ffmpeg(const temp_dir& folder, const std::filesystem::path& film) {
  const std::filesystem::path raw = folder / "sound.f32";
  const auto made =
      penstock_test::run_program("ffmpeg -hide_banner -v error -y -i " + penstock_test::quoted_path(film) +
                                 " -map 0:a:0 -f f32le " + penstock_test::quoted_path(raw));
  INFO(made.output);
  REQUIRE(made.status == 0);
  const byte_vector bytes = file_bytes(raw);
  std::vector<float> samples(bytes.size() / sizeof(float));
  std::memcpy(samples.data(), bytes.data(), samples.size() * sizeof(float));
  return samples;
}

/// The largest difference; `all` has the frames of `form`, each with its channels.
float worst_of(const ps::film_sound& sound, const ps::sound_part& part, const std::vector<float>& all) {
  const std::size_t channels = sound.form().channels, frames = part.frames;
  std::vector<float> found(frames * channels);
  sound.draw(part, {found.data(), frames});
  float worst = 0;
  for (std::size_t c = 0; c < channels; ++c)
    for (std::size_t i = 0; i < frames; ++i)
      worst = std::max(worst, std::abs(found[c * frames + i] - all[(part.first + i) * channels + c]));
  return worst;
}

}  // namespace

TEST_CASE("the sound of a film, and any part of it, is what ffmpeg writes", "[codec][video][audio]") {
  if (!penstock_test::have_ffmpeg()) return;
  const temp_dir folder;
  ps::sound_track_scratch other;  // of all films
  struct kind {
    std::string name, encoder, options, filter = "anull";
  };
  for (const kind& k : std::vector<kind>{
           {"aac.mp4", "aac", "-c:a aac -b:a 96k"},
           {"aac.mkv", "aac", "-c:a aac -b:a 96k"},
           {"parts.mp4", "aac", "-c:a aac -movflags frag_keyframe+empty_moov"},
           {"late.mp4", "aac", "-c:a aac", "atrim=start=1.5"},
           {"opus.mkv", "libopus", "-c:a libopus -ar 48000"},
           {"vorbis.mkv", "libvorbis", "-c:a libvorbis"},
           {"mp3.mp4", "libmp3lame", "-c:a libmp3lame"},
           {"flac.mkv", "flac", "-c:a flac -sample_fmt s32"},
           {"alac.mov", "alac", "-c:a alac"},
           {"pcm.mov", "pcm_s16le", "-c:a pcm_s16le"},
           {"bytes.mkv", "pcm_u8", "-c:a pcm_u8"},
       }) {
    INFO(k.name);
    if (!penstock_test::have_encoder(k.encoder)) {
      WARN("ffmpeg has no encoder " << k.encoder << ": " << k.name << " is not tested");
      continue;
    }
    const auto path = penstock_test::write_film(folder, film_with(k.name, k.options, k.filter));
    const std::vector<float> all = sound_by_ffmpeg(folder, path);
    const byte_vector file = file_bytes(path);
    ps::sound_track_scratch scratch;
    const ps::film_sound sound = ps::sound_track().decode(file, scratch);
    const ps::sound_form form = sound.form();
    CHECK(form.channels == 2);
    CHECK(form.rate == (k.encoder == "libopus" ? 48'000 : 44'100));
    REQUIRE(form.frames == all.size() / 2);
    CHECK(scratch.reader.begin_time() ==
          Approx(k.name == "late.mp4" ? 1.5 : 0.0).margin(k.name == "late.mp4" ? 0.03 : 0.005));
    CHECK(worst_of(sound, {0, form.frames}, all) == 0);
    const float most_off = k.encoder == "libopus" ? 1e-6f : 0;
    ps::rng random(1, 0, 0);
    for (int i = 0; i < 12; ++i) {
      const std::uint64_t first = random.below(form.frames);
      const std::uint64_t most = form.frames - first;
      CHECK(worst_of(sound, {first, std::min<std::uint64_t>(most, 3'000)}, all) <= most_off);
      if (i % 3 != 0 || most < 3'500) continue;  // what follows at once
      CHECK(worst_of(sound, {first + 2'900, std::min<std::uint64_t>(most - 2'900, 600)}, all) <= most_off);
    }
    // Again, as the process knows it, and without.
    CHECK(worst_of(ps::sound_track{.index_memory = 0}.decode(file, other), {1'000, 50}, all) <= most_off);
    CHECK(worst_of(ps::sound_track().decode(file, other), {1'000, 50}, all) <= most_off);

    // As `audio_manifest` gives it.
    const struct {
      ps::bytes_view all;
      operator ps::bytes_view() const { return all; }
      [[nodiscard]] ps::sound_segment segment() const {
        return {.offset = 0.5, .duration = 0.1, .channel = 1};
      }
    } utterance{file};
    const auto spoken = ps::sound_track().decode(utterance, other);
    CHECK(spoken.form() == ps::sound_form{form.rate / 10, form.rate, 1});
    std::vector<float> said(form.rate / 10);
    spoken.draw({0, said.size()}, {said.data(), said.size()});
    CHECK(std::abs(said[7] - all[2 * (form.rate / 2 + 7) + 1]) <= 1e-6f);

    // Near enough, and the same again after other parts.
    const ps::film_sound near = ps::sound_track{.exact = false}.decode(file, other);
    std::vector<float> once(2 * 3'000), again(once.size());
    const ps::sound_part late{form.frames - 9'000, 3'000};
    near.draw(late, {once.data(), 3'000});
    CHECK(worst_of(near, {10'000, 9}, all) < (k.encoder == "aac" ? 0.3f : 1e-6f));
    near.draw({late.first - 5'000, 3'000}, {again.data(), 3'000});
    near.draw(late, {again.data(), 3'000});
    CHECK(once == again);

    CHECK(caught([&] {
            static_cast<void>(ps::sound_track{.limits = {.channels = 1}}.decode(file, other));
          }).code == ps::errc::limit);
    for (std::size_t cut = 1; cut < 10; ++cut) {
      const byte_vector part(file.begin(),
                             file.begin() + static_cast<std::ptrdiff_t>(file.size() * cut / 10));
      CHECK(caught([&] { static_cast<void>(ps::sound_track().decode(part, other)); }).code ==
            ps::errc::format);
    }
  }
}

TEST_CASE("damaged sounds, gaps and files without sound are errors", "[codec][video][audio]") {
  if (!penstock_test::have_ffmpeg()) return;
  const temp_dir folder;
  ps::sound_track_scratch scratch;
  const auto refused = [&](const byte_vector& file) {
    return caught([&] { static_cast<void>(ps::sound_track().decode(file, scratch).finish()); }).line;
  };
  byte_vector file = file_bytes(penstock_test::write_film(folder, film_with("a.mkv", "-c:a flac")));
  {
    const auto demuxer =
        std::make_unique<ps::detail::film_demuxer>(file, ps::detail::film_container::matroska);
    const AVStream& stream = demuxer->sound();
    const ps::detail::owned_packet packet(av_packet_alloc());
    for (int n = 0; n < 30;) {
      REQUIRE(demuxer->read(*packet) == 0);
      n += packet->stream_index == stream.index ? 1 : 0;
      if (n == 30) file[static_cast<std::size_t>(packet->pos + packet->size / 2)] ^= std::byte{0xff};
      av_packet_unref(packet.get());
    }
  }
  CHECK(refused(file).find("the file's sound cannot be decoded at ") != std::string::npos);
  CHECK(refused(file).find("decode<sound_track>") == std::string::npos);  // named by the stage
  CHECK(refused(file_bytes(penstock_test::write_film(
                    folder, film_with("gap.mkv", "-c:a flac", "aselect='lt(t,2)+gt(t,4)'"))))
            .find("close the gap") != std::string::npos);
  CHECK(refused(file_bytes(penstock_test::write_film(folder, {"none.mp4", "", "-c:v mpeg4", 10})))
            .find("the file has no sound") != std::string::npos);
  CHECK(refused(codec_test::to_vector("RIFF....AVI LIST")).find("begins neither as mp4 nor as matroska") !=
        std::string::npos);
}

TEST_CASE("silence that looks as the head of a block is no part of it", "[codec][video][audio]") {
  if (!penstock_test::have_ffmpeg()) return;
  const temp_dir folder;
  byte_vector file =
      file_bytes(penstock_test::write_film(folder, {"a.mkv", "", "-c:a pcm_u8 -write_crc32 0", 0, 0, 0,
                                                    "-f lavfi -i anullsrc=r=8000:cl=mono -t 1"}));
  ps::sound_track_scratch scratch;
  const auto samples = [&](const ps::sound_track& codec) {
    const ps::film_sound sound = codec.decode(file, scratch);
    std::vector<float> all(sound.form().frames);
    sound.draw({0, all.size()}, {all.data(), all.size()});
    return all;
  };
  const std::vector<float> silence = samples({});
  file[file.size() / 2] ^= std::byte{0x40};  // another sound, whose index is the same
  CHECK(samples({}) == samples({.index_memory = 0}));
  CHECK_FALSE(samples({}) == silence);
}

TEST_CASE("a clip's sound is that of its time", "[codec][video][audio]") {
  if (!penstock_test::have_ffmpeg()) return;
  const temp_dir folder;
  const auto path = penstock_test::write_film(folder, film_with("a.mkv", "-c:a pcm_s16le"));
  const std::vector<float> all = sound_by_ffmpeg(folder, path);
  const byte_vector pictures = penstock_test::frames_by_ffmpeg(folder, path);
  const byte_vector bytes = file_bytes(path);
  const std::vector<std::string> files(
      6, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  const std::size_t one = 160 * 96 * 3, rate = 44'100;
  const auto films = ps::from(files) | ps::map([](const std::string& film) {
                       return ps::record<ps::field<"mp4", std::string_view>>(film);
                     });
  auto both = films | ps::decode<ps::field<"mp4", ps::video>> |
              ps::map<"mp4">(ps::random_clip(5, {.stride = 4})) | ps::map(ps::with_sound<"mp4", "sound">()) |
              ps::map<"sound">(ps::channel(0));
  std::vector<std::size_t> begins;
  for (const unsigned workers : {0u, 2u}) {
    auto run = (both | ps::seed(3) | ps::batch(2) | ps::workers(workers)).open();
    std::vector<std::size_t> found;
    while (auto batch = run.next()) {
      const auto clips = ps::get<"mp4">(*batch);
      const auto sounds = ps::get<"sound">(*batch);
      REQUIRE(sounds.shape() == ps::extents(2, 1, 17 * rate / 25));  // from frame 0 to the end of frame 16
      for (std::size_t i = 0; i < 2; ++i) {
        // The drawn frame, by its pixels.
        const auto first = clips[i][0].values();
        std::size_t frame = 0;
        while (frame < 150 && std::memcmp(first.data(), pictures.data() + frame * one, one) != 0) ++frame;
        REQUIRE(frame < 150);
        found.push_back(frame);
        const auto samples = sounds[i].values();
        std::size_t wrong = 0;
        for (std::size_t s = 0; s < samples.size(); ++s)
          wrong += samples[s] == all[(frame * rate / 25 + s) * 2] ? 0 : 1;
        CHECK(wrong == 0);
      }
    }
    CHECK(found.size() == 6);
    if (workers == 0) begins = found;
    CHECK(found == begins);
  }
  CHECK(std::count(begins.begin(), begins.end(), begins[0]) < 6);

  // Of the film itself: from its first picture to its last; silent before the sound begins.
  const auto late =
      file_bytes(penstock_test::write_film(folder, film_with("late.mp4", "-c:a aac", "atrim=start=1.5")));
  ps::video_scratch video;
  ps::sound_track_scratch scratch;
  const ps::film film = ps::video().decode(late, video);
  const ps::film_sound sound = ps::detail::sound_of(film, {}, scratch);
  CHECK(sound.form().frames == 6 * rate);
  const auto samples = sound.finish();
  CHECK(std::all_of(samples.data(), samples.data() + rate, [](float s) { return s == 0; }));
  CHECK(std::any_of(samples.data() + 2 * rate, samples.data() + 3 * rate, [](float s) { return s != 0; }));
}

}  // namespace sound_track_test
