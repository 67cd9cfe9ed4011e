// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/video.hpp>
#include <penstock/core/random.hpp>
#include <penstock/image.hpp>
#include <penstock/order/repeat.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/directory.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/seed.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/video/clip.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/count_allocations.hpp"
#include "support/film.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

namespace ps = penstock;
using codec_test::byte_vector;
using codec_test::caught;
using codec_test::file_bytes;
using penstock_test::film_kind;
using penstock_test::open_film;
using penstock_test::temp_dir;

static_assert(ps::codec<ps::video> && ps::extension_codec<ps::video> && ps::lone_codec<ps::video>);
static_assert(ps::lazy_film<ps::film> && ps::lazy_image<ps::film::picture_type>);

namespace {

/// Where these letters are, from a place on; the file's size if they are not.
std::size_t place_of(const byte_vector& file, std::string_view letters, std::size_t from) {
  const auto begin = file.begin() + static_cast<std::ptrdiff_t>(from);
  return static_cast<std::size_t>(
      std::search(begin, file.end(), letters.begin(), letters.end(),
                  [](std::byte b, char c) { return b == static_cast<std::byte>(c); }) -
      file.begin());
}

}  // namespace

TEST_CASE("frames in any order are those of the film in sequence", "[codec][video]") {
  if (!penstock_test::have_ffmpeg()) return;
  const temp_dir folder;
  for (const film_kind& kind : penstock_test::exact_films()) {
    INFO(kind.name);
    if (!penstock_test::have_encoder(kind.encoder)) {
      WARN("ffmpeg has no encoder " << kind.encoder << ": " << kind.name << " is not tested");
      continue;
    }
    const auto path = penstock_test::write_film(folder, kind);
    const byte_vector all = penstock_test::frames_by_ffmpeg(folder, path);
    const std::size_t one = std::size_t{kind.width} * kind.height * 3;
    REQUIRE(all.size() == one * kind.frames);

    open_film opened(file_bytes(path));
    REQUIRE(opened.film().frames() == kind.frames);
    REQUIRE(opened.film().facts().size == ps::image_size{kind.width, kind.height});
    std::vector<std::uint32_t> numbers(kind.frames);
    std::iota(numbers.begin(), numbers.end(), 0u);
    CHECK(penstock_test::wrong_frames(opened.frames(numbers), all, one) == 0);

    ps::rng random(1, 0, 0);
    for (std::size_t i = numbers.size(); i > 1; --i) std::swap(numbers[i - 1], numbers[random.below(i)]);
    CHECK(penstock_test::wrong_frames(opened.frames(numbers), penstock_test::chosen_frames(all, one, numbers),
                                      one) == 0);
    // One at a time, with a decoder that has decoded others before.
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < 40; ++i) {
      const std::vector<std::uint32_t> frame{numbers[i % numbers.size()]};
      wrong += opened.frames(frame) == penstock_test::chosen_frames(all, one, frame) ? 0 : 1;
    }
    CHECK(wrong == 0);
    // Some, of which several are the same.
    for (int round = 0; round < 10; ++round) {
      std::vector<std::uint32_t> some;
      for (int i = 0; i < 8; ++i) some.push_back(static_cast<std::uint32_t>(random.below(kind.frames)));
      some.push_back(some.front());
      wrong += opened.frames(some) == penstock_test::chosen_frames(all, one, some) ? 0 : 1;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("a film's facts are those of its frames", "[codec][video]") {
  if (!penstock_test::have_ffmpeg() || !penstock_test::have_encoder("libx264")) return;
  const temp_dir folder;
  const std::string x264 = "-c:v libx264 -g 20 -bf 2 -pix_fmt yuv420p ";
  SECTION("times") {
    open_film opened(file_bytes(penstock_test::write_film(folder, {"a.mp4", "", x264, 50})));
    const ps::film_facts facts = opened.film().facts();
    CHECK(facts.frames == 50);
    CHECK(facts.frame_rate == Approx(25));
    CHECK(facts.begin_time == Approx(0).margin(1e-9));
    CHECK(facts.duration == Approx(2));
    CHECK(opened.film().time_of(10) == Approx(0.4));
    CHECK(opened.film().frame_at(0.41) == 10);
    CHECK(opened.film().frame_at(0.399) == 9);
    CHECK(opened.film().frame_at(-0.001) == 50);
    CHECK(opened.film().frame_at(2.001) == 50);
    const codec_test::thrown failure = caught([&] { static_cast<void>(opened.frames({3, 50})); });
    CHECK(failure.code == ps::errc::argument);
    CHECK(failure.line.find("frame 50 is wanted of a film of 50 frames") != std::string::npos);
  }
  SECTION("an edit list leaves frames out") {
    const auto whole = penstock_test::write_film(folder, {"whole.mp4", "", x264, 100});
    const auto cut = penstock_test::write_film(
        folder, {"cut.mp4", "", "-c copy", 0, 160, 96, "-ss 1.4 -i " + penstock_test::quoted_path(whole)});
    const byte_vector all = penstock_test::frames_by_ffmpeg(folder, whole);
    const std::size_t one = 160 * 96 * 3;
    open_film opened(file_bytes(cut));
    REQUIRE(opened.film().frames() == 65);  // of 80 that the file has
    CHECK(opened.film().time_of(0) == Approx(0).margin(0.001));
    std::vector<std::uint32_t> numbers(65), in_whole(65);
    std::iota(numbers.begin(), numbers.end(), 0u);
    std::iota(in_whole.begin(), in_whole.end(), 35u);
    CHECK(penstock_test::wrong_frames(opened.frames(numbers),
                                      penstock_test::chosen_frames(all, one, in_whole), one) == 0);
  }
  SECTION("a film is turned as it says") {
    const auto upright = penstock_test::write_film(folder, {"upright.mp4", "", x264, 10});
    for (const int degrees : {90, 180, 270}) {
      const auto turned = penstock_test::write_film(
          folder, {"turned.mp4", "", "-c copy -metadata:s:v:0 rotate=" + std::to_string(degrees), 0, 160, 96,
                   "-i " + penstock_test::quoted_path(upright)});
      INFO(degrees);
      const byte_vector all = penstock_test::frames_by_ffmpeg(folder, turned);
      open_film opened(file_bytes(turned));
      const ps::image_size size = opened.film().facts().size;
      CHECK(size == (degrees == 180 ? ps::image_size{160, 96} : ps::image_size{96, 160}));
      CHECK(penstock_test::wrong_frames(opened.frames({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}), all, 160 * 96 * 3) ==
            0);
      open_film stored(opened.bytes, {.orient = false});
      CHECK(stored.film().facts().size == ps::image_size{160, 96});
    }
  }
}

TEST_CASE("a truncated film is an error, and what it has can be had", "[codec][video]") {
  if (!penstock_test::have_ffmpeg() || !penstock_test::have_encoder("libx264")) return;
  const temp_dir folder;
  for (const film_kind& kind : std::vector<film_kind>{
           {"end.mp4", "", "-c:v libx264 -g 20 -bf 2 -pix_fmt yuv420p", 60},
           {"front.mp4", "", "-c:v libx264 -g 20 -bf 2 -pix_fmt yuv420p -movflags +faststart", 60},
           {"parts.mp4", "", "-c:v libx264 -g 10 -pix_fmt yuv420p -movflags frag_keyframe+empty_moov", 60},
           {"a.mkv", "", "-c:v libx264 -g 20 -bf 2 -pix_fmt yuv420p", 60}}) {
    const auto path = penstock_test::write_film(folder, kind);
    const byte_vector file = file_bytes(path), all = penstock_test::frames_by_ffmpeg(folder, path);
    const std::size_t one = 160 * 96 * 3;
    std::size_t recovered = 0;
    for (std::size_t cut = 0; cut < 40; ++cut) {
      const byte_vector part(file.begin(),
                             file.begin() + static_cast<std::ptrdiff_t>(file.size() * cut / 40));
      INFO(kind.name << ", the first " << part.size() << " of " << file.size() << " bytes");
      open_film opened(part);
      const codec_test::thrown failure = caught([&] { static_cast<void>(opened.frames({0})); });
      CHECK(failure.code == ps::errc::format);
      CHECK_FALSE(failure.line.empty());

      // Frames that are there before the cut are right, and the film is counted.
      open_film recovering(part, {.recover = true});
      std::uint64_t frames = 0;
      if (!caught([&] { frames = recovering.film().frames(); }).line.empty() || frames == 0) continue;
      CHECK(recovering.scratch.warnings >= 1);
      const byte_vector first = recovering.frames({0});
      CHECK(first.size() == one);
      recovered += std::equal(first.begin(), first.end(), all.begin()) ? 1 : 0;
    }
    if (kind.name != "end.mp4") CHECK(recovered > 20);
  }
}

TEST_CASE("a damaged film is an error of its frame, with its time", "[codec][video]") {
  if (!penstock_test::have_ffmpeg() || !penstock_test::have_encoder("libx264")) return;
  const temp_dir folder;
  const auto path =
      penstock_test::write_film(folder, {"a.mp4", "", "-c:v libx264 -g 20 -bf 2 -pix_fmt yuv420p", 60});
  byte_vector file = file_bytes(path);
  const byte_vector all = penstock_test::frames_by_ffmpeg(folder, path);
  const std::size_t one = 160 * 96 * 3;
  {
    open_film opened(file);
    const ps::film film = opened.film();
    const auto& index = opened.scratch.reader().index();
    CHECK(film.frames() == 60);
    // The second group's first frame becomes nonsense.
    const ps::film_packet key = index.packets()[index.packets_for(25).first];
    REQUIRE_FALSE(key.copied);
    for (std::size_t i = 8; i < key.size; ++i) file[key.offset + i] = std::byte{0xa5};
  }
  open_film damaged(file);
  const codec_test::thrown failure = caught([&] { static_cast<void>(damaged.frames({25})); });
  CHECK(failure.code == ps::errc::format);
  CHECK(failure.line.find("frame 25 of the video file, at 1.000000 s, cannot be decoded") !=
        std::string::npos);
  CHECK(failure.line.find("decode<video>") != std::string::npos);
  // Other groups are as they were, with the same decoder.
  CHECK(penstock_test::wrong_frames(damaged.frames({5, 50, 19}),
                                    penstock_test::chosen_frames(all, one, {5, 50, 19}), one) == 0);
  open_film recovering(file, {.recover = true});
  const byte_vector some = recovering.frames({25, 5, 26});
  CHECK(recovering.scratch.warnings == 1);
  CHECK(std::equal(some.data() + one, some.data() + 2 * one, all.data() + 5 * one));
}

TEST_CASE("a film that was met before is known again, and one that differs is not", "[codec][video]") {
  if (!penstock_test::have_ffmpeg() || !penstock_test::have_encoder("libx264")) return;
  const temp_dir folder;
  auto& kept = ps::detail::kept_indexes<ps::detail::kept_film>::of_process();
  const std::size_t one = 160 * 96 * 3;
  std::vector<std::uint32_t> numbers(60);
  std::iota(numbers.begin(), numbers.end(), 0u);
  for (const std::string name : {"a.mp4", "parts.mp4", "a.mkv"}) {
    INFO(name);
    const std::string how = name == "parts.mp4" ? " -movflags frag_keyframe+empty_moov" : "";
    const auto path =
        penstock_test::write_film(folder, {name, "", "-c:v libx264 -g 20 -bf 2 -pix_fmt yuv420p" + how, 60});
    const byte_vector all = penstock_test::frames_by_ffmpeg(folder, path);
    open_film first(file_bytes(path)), again(first.bytes), other(first.bytes);
    CHECK(penstock_test::wrong_frames(first.frames(numbers), all, one) == 0);
    const std::uint64_t bytes = kept.bytes();
    CHECK(bytes > 60 * sizeof(ps::film_packet));
    CHECK(penstock_test::wrong_frames(again.frames(numbers), all, one) == 0);
    CHECK(&again.scratch.reader().index() == &first.scratch.reader().index());
    CHECK(kept.bytes() == bytes);
    // Limits and cuts are seen as if it were new.
    open_film small(first.bytes, {.limits = {.frames = 59}});
    CHECK(caught([&] { static_cast<void>(small.film()); }).code == ps::errc::limit);
    open_film cut(first.bytes);
    cut.bytes.pop_back();
    CHECK(caught([&] { static_cast<void>(cut.film()); }).code == ps::errc::format);
    // What says when and where packets are is another film's: each bit of it counts.
    const ps::film_packet& packet = first.scratch.reader().index().packets()[30];
    const std::size_t place =
        name.ends_with("mp4") ? place_of(other.bytes, "trun", 0) < other.bytes.size()
                                    ? place_of(other.bytes, "trun", 0) + 40
                                    : place_of(other.bytes, "ctts", 0) + 40
                              : static_cast<std::size_t>(packet.offset) - 2;  // the time within the cluster
    const auto container = ps::detail::film_container_of(other.bytes);
    const auto identity = ps::detail::film_identity_of(first.bytes, container);
    REQUIRE(identity);
    other.bytes[place] ^= std::byte{1};
    CHECK_FALSE(ps::detail::film_identity_of(other.bytes, container) == identity);
  }
  // Beyond the memory for them, those go that were used longest ago.
  const byte_vector file =
      file_bytes(penstock_test::write_film(folder, {"b.mp4", "", "-c:v libx264 -pix_fmt yuv420p", 10}));
  CHECK(open_film(file, {.index_memory = 2'000}).film().frames() == 10);
  CHECK(kept.bytes() <= 2'000);
  const std::uint64_t bytes = kept.bytes();
  CHECK(open_film(file, {.index_memory = 0}).film().frames() == 10);
  CHECK(kept.bytes() == bytes);
}

TEST_CASE("a GPU that is asked for decodes, or is missed", "[codec][video]") {
  if (!penstock_test::have_ffmpeg() || !penstock_test::have_encoder("libx264")) return;
  const temp_dir folder;
  open_film opened(
      file_bytes(penstock_test::write_film(folder, {"a.mp4", "", "-c:v libx264 -pix_fmt yuv420p", 10})),
      {.device = ps::film_device::cuda});
  const codec_test::thrown failure = caught([&] { static_cast<void>(opened.frames({3})); });
  if (failure.line.empty()) return;  // there is a GPU
  CHECK(failure.code == ps::errc::argument);
  CHECK(failure.line.find("video{.device = film_device::cuda} needs an NVIDIA GPU") != std::string::npos);
  opened.codec.device = ps::film_device::cpu;
  CHECK(opened.frames({3}).size() == 160 * 96 * 3);
}

TEST_CASE("groups behind one that is lost are decoded", "[codec][video]") {
  if (!penstock_test::have_ffmpeg() || !penstock_test::have_encoder("libx264")) return;
  const temp_dir folder;
  const auto path =
      penstock_test::write_film(folder, {"a.mp4", "", "-c:v libx264 -g 20 -bf 2 -pix_fmt yuv420p", 60});
  byte_vector file = file_bytes(path);
  const byte_vector all = penstock_test::frames_by_ffmpeg(folder, path);
  const std::size_t one = 160 * 96 * 3;
  {
    open_film opened(file);
    CHECK(opened.film().frames() == 60);
    const auto& index = opened.scratch.reader().index();
    for (std::uint32_t i = 20; i < 40; ++i) {
      const ps::film_packet& lost = index.packets()[i];
      std::fill_n(file.begin() + static_cast<std::ptrdiff_t>(lost.offset), lost.size, std::byte{0xa5});
    }
  }
  open_film recovering(file, {.recover = true});
  const byte_vector some = recovering.frames({25, 5, 50});
  CHECK(recovering.scratch.warnings == 1);
  CHECK(std::all_of(some.begin(), some.begin() + static_cast<std::ptrdiff_t>(one),
                    [](std::byte value) { return value == std::byte{0}; }));
  CHECK(std::equal(some.data() + one, some.data() + 2 * one, all.data() + 5 * one));
  CHECK(std::equal(some.data() + 2 * one, some.data() + 3 * one, all.data() + 50 * one));
}

TEST_CASE("an mkv film does not lose frames in silence", "[codec][video]") {
  if (!penstock_test::have_ffmpeg() || !penstock_test::have_encoder("libx264")) return;
  const temp_dir folder;
  const byte_vector file = file_bytes(penstock_test::write_film(
      folder, {"a.mkv", "", "-c:v libx264 -g 20 -bf 2 -pix_fmt yuv420p -cluster_time_limit 600", 60}));
  REQUIRE(open_film(file).film().frames() == 60);
  for (const std::size_t at : {file.size() / 2, file.size() * 2 / 3})
    for (const std::byte value : {std::byte{0}, std::byte{0x55}}) {
      byte_vector damaged = file;
      std::fill_n(damaged.begin() + static_cast<std::ptrdiff_t>(at), 4'000, value);
      const codec_test::thrown failure = caught([&] { static_cast<void>(open_film(damaged).film()); });
      CHECK(failure.code == ps::errc::format);
      CHECK(failure.line.find("the video file is damaged") != std::string::npos);
      open_film recovering(damaged, {.recover = true});
      CHECK(recovering.film().frames() < 60);
      CHECK(recovering.scratch.warnings == 1);
    }
}

TEST_CASE("frames behind the end of a file are missed, where its size is not told", "[codec][video]") {
  if (!penstock_test::have_ffmpeg() || !penstock_test::have_encoder("libx264")) return;
  const temp_dir folder;
  byte_vector file = file_bytes(penstock_test::write_film(
      folder, {"a.mp4", "", "-c:v libx264 -g 20 -bf 2 -pix_fmt yuv420p -movflags +faststart", 60}));
  const std::size_t data = place_of(file, "mdat", 0);
  std::fill_n(file.begin() + static_cast<std::ptrdiff_t>(data) - 4, 4, std::byte{0});  // up to the end
  CHECK(open_film(file).film().frames() == 60);
  {
    open_film opened(file);
    CHECK(opened.film().frames() == 60);
    file.resize(opened.scratch.reader().index().packets()[40].offset);
  }
  const codec_test::thrown failure = caught([&] { static_cast<void>(open_film(file).film()); });
  CHECK(failure.code == ps::errc::format);
  CHECK(failure.line.find("bytes, and frames that lie behind them") != std::string::npos);
  open_film recovering(file, {.recover = true});
  CHECK(recovering.film().frames() == 40);
  CHECK(recovering.scratch.warnings == 1);
}

TEST_CASE("a small film with the same bytes in all packets is refused", "[codec][video]") {
  if (!penstock_test::have_ffmpeg() || !penstock_test::have_encoder("mjpeg")) return;
  const temp_dir folder;
  // Of two streams, whose frames take turns, so that each frame has a place of its own in the tables.
  byte_vector file =
      file_bytes(penstock_test::write_film(folder, {"a.mov", "", "-map 0:v -map 0:v -c:v mjpeg -q:v 3", 50}));
  CHECK(open_film(file).film().frames() == 50);
  const auto put = [&](std::size_t at, std::uint64_t value) {
    for (std::size_t i = 0; i < 4; ++i) file[at + i] = static_cast<std::byte>(value >> (24 - 8 * i));
  };
  const std::size_t data = place_of(file, "mdat", 0), moov = place_of(file, "moov", data);
  for (std::size_t sizes = place_of(file, "stsz", moov); sizes != file.size();
       sizes = place_of(file, "stsz", sizes + 4))
    for (std::size_t i = 0; i < 50; ++i) put(sizes + 16 + 4 * i, moov - 4 - (data + 4));
  for (std::size_t places = place_of(file, "stco", moov); places != file.size();
       places = place_of(file, "stco", places + 4))
    for (std::size_t i = 0; i < 50; ++i) put(places + 12 + 4 * i, data + 4);
  const codec_test::thrown failure = caught([&] { static_cast<void>(open_film(file).film()); });
  CHECK(failure.code == ps::errc::format);
  CHECK(failure.line.find("more than 16 times as many bytes as the file itself") != std::string::npos);
}

TEST_CASE("a film whose header's parameters are damaged is black with recover", "[codec][video]") {
  if (!penstock_test::have_ffmpeg() || !penstock_test::have_encoder("libx264")) return;
  const temp_dir folder;
  byte_vector file = file_bytes(
      penstock_test::write_film(folder, {"a.mp4", "", "-c:v libx264 -g 20 -bf 2 -pix_fmt yuv420p", 60}));
  file[place_of(file, "avcC", 0) + 10] = std::byte{0xff};  // the length of the first one
  open_film strict(file);
  CHECK(caught([&] { static_cast<void>(strict.frames({45})); }).code == ps::errc::format);
  open_film recovering(file, {.recover = true});
  CHECK((recovering.frames({45, 3}) == byte_vector(2 * 160 * 96 * 3)));
  CHECK(recovering.scratch.warnings == 1);
}

TEST_CASE("a film that is whole is the same with recover", "[codec][video]") {
  if (!penstock_test::have_ffmpeg() || !penstock_test::have_encoder("libx264")) return;
  const temp_dir folder;
  const auto path = penstock_test::write_film(
      folder,
      {"refresh.mp4", "", "-c:v libx264 -x264-params intra-refresh=1:keyint=25 -pix_fmt yuv420p", 100});
  const byte_vector all = penstock_test::frames_by_ffmpeg(folder, path);
  const std::size_t one = 160 * 96 * 3;
  open_film opened(file_bytes(path), {.recover = true});
  std::size_t wrong = 0;
  for (std::uint32_t frame = 0; frame < 100; ++frame)
    wrong += opened.frames({frame}) == penstock_test::chosen_frames(all, one, {frame}) ? 0 : 1;
  CHECK(wrong == 0);
  CHECK(opened.scratch.warnings == 0);
}

TEST_CASE("what is no film, or too large, is refused before it is decoded", "[codec][video]") {
  const auto refused = [](const byte_vector& file, const ps::video& codec = {}) {
    return caught([&] { static_cast<void>(open_film(file, codec).film()); });
  };
  CHECK(refused({}).line.find("the video file is empty") != std::string::npos);
  CHECK(
      refused(codec_test::to_vector("RIFF....AVI LIST")).line.find("begins neither as mp4 nor as matroska") !=
      std::string::npos);
  CHECK(refused(codec_test::to_vector(std::string_view("\0\0\0\x10"
                                                       "ftypisom\0\0\0\0",
                                                       16)))
            .code == ps::errc::format);
  CHECK_FALSE(ps::video::recognises(ps::bytes_of("short")));
  if (!penstock_test::have_ffmpeg() || !penstock_test::have_encoder("libx264")) return;
  const temp_dir folder;
  const byte_vector file =
      file_bytes(penstock_test::write_film(folder, {"a.mp4", "", "-c:v libx264 -pix_fmt yuv420p", 10}));
  CHECK(ps::video::recognises(file));
  CHECK(refused(file, {.limits = {.width = 159}}).code == ps::errc::limit);
  CHECK(refused(file, {.limits = {.bytes = 160 * 96 * 3 - 1}}).code == ps::errc::limit);
  CHECK(refused(file, {.limits = {.frames = 9}}).code == ps::errc::limit);
  CHECK(refused(file, {.limits = {.width = 160, .height = 96, .frames = 10}}).line.empty());
  // A header that claims 65,535 x 65,535 pixels.
  byte_vector bomb = file;
  const std::string_view name = "avc1";
  auto at = bomb.begin();
  while ((at = std::search(at, bomb.end(), name.begin(), name.end(), [](std::byte b, char c) {
            return b == static_cast<std::byte>(c);
          })) != bomb.end()) {
    if (bomb.end() - at > 32)
      for (int i = 28; i < 32; ++i) at[i] = std::byte{0xff};  // its width and height
    ++at;
  }
  CHECK(refused(bomb).code == ps::errc::limit);
}

TEST_CASE("clips in batches are the same for any number of workers and after a restore", "[codec][video]") {
  if (!penstock_test::have_ffmpeg() || !penstock_test::have_encoder("libx264")) return;
  const temp_dir folder;
  std::vector<std::string> films;
  for (const std::string name : {"a.mp4", "b.mkv", "c.mp4", "d.mp4", "e.mkv", "f.mp4"}) {
    const byte_vector file =
        file_bytes(penstock_test::write_film(folder, {name, "", "-c:v libx264 -g 20 -bf 2 -pix_fmt yuv420p",
                                                      30 + 5 * static_cast<std::uint32_t>(films.size())}));
    films.emplace_back(reinterpret_cast<const char*>(file.data()), file.size());
  }
  const auto plan = [&] {
    return ps::from(films) | ps::decode<ps::video> |
           ps::map(ps::random_clip(4, {.stride = 3}), ps::random_resized_crop(32), ps::horizontal_flip(),
                   ps::normalize(ps::imagenet), ps::to_chw()) |
           ps::shuffle(ps::seed(5)) | ps::repeat(2) | ps::batch(2);
  };
  const auto delivered = [](auto&& run, std::size_t skip) {
    std::vector<std::vector<float>> batches;
    std::size_t step = 0;
    while (auto batch = run.next()) {
      const auto values = batch->values();
      CHECK(values.shape() == ps::extents(2, 4, 3, 32, 32));
      if (step++ >= skip) batches.emplace_back(values.values().begin(), values.values().end());
    }
    return batches;
  };
  const auto expected = delivered((plan() | ps::workers(0)).open(), 0);
  CHECK(expected.size() == 6);
  CHECK((delivered((plan() | ps::workers(1)).open(), 0) == expected));
  CHECK((delivered((plan() | ps::workers(3)).open(), 0) == expected));
  const auto after = [&] {
    auto run = (plan() | ps::workers(2)).open();
    for (int i = 0; i < 2; ++i) CHECK(run.next());
    const auto state = run.state();
    return delivered((plan() | ps::workers(1)).open(state), 0);
  }();
  CHECK((after == std::vector<std::vector<float>>(expected.begin() + 2, expected.end())));

  // Resized by the library's own resize: as each frame alone would be.
  open_film opened(codec_test::to_vector(std::string_view(films[0])));
  const byte_vector whole = opened.frames({7});
  ps::image_scratch scratch;
  const ps::shown_image<std::uint8_t, 3> image(
      ps::pixel_view<std::uint8_t, 3>(reinterpret_cast<const std::uint8_t*>(whole.data()), {160, 96}));
  const auto small = ps::resize(20, 30)(image, ps::call<ps::image_scratch>{{}, 0, 0, 0, scratch});
  const auto alone = small.finish();
  for (auto&& batch : (ps::from(std::vector<std::string>{films[0]}) | ps::decode<ps::video> |
                       ps::map(ps::frames_at({9, 7}), ps::resize(20, 30)) | ps::batch(1))
                          .epoch(0)) {
    const auto frame = batch.values()[0][1];
    CHECK(std::equal(alone.values().begin(), alone.values().end(), frame.values().begin()));
  }
}

TEST_CASE("a clip allocates nothing once its memory has grown", "[codec][video]") {
  if (!penstock_test::have_ffmpeg() || !penstock_test::have_encoder("libx264")) return;
  const temp_dir folder;
  const byte_vector file = file_bytes(
      penstock_test::write_film(folder, {"a.mp4", "", "-c:v libx264 -g 20 -bf 2 -pix_fmt yuv420p", 60}));
  ps::video_scratch scratch;
  const ps::video codec;
  std::vector<std::uint8_t> pixels(160 * 96 * 3 * 3);
  const auto take = [&](std::initializer_list<std::uint32_t> frames) {
    const ps::film film = codec.decode(file, scratch);
    const ps::film_clip<ps::film, ps::film::picture_type> clip(film, {frames.begin(), frames.size()},
                                                               film.picture());
    clip.write_to(ps::destination<std::uint8_t>(pixels.data(), clip.shape()));
  };
  take({1, 30, 59});
  // FFmpeg has an allocator of its own
  CHECK(penstock_test::allocations_of([&] { take({40, 2, 17}); }) == 0);
}

TEST_CASE("the example of docs/video.md", "[codec][video]") {
  if (!penstock_test::have_ffmpeg() || !penstock_test::have_encoder("libx264")) return;
  const temp_dir folder;
  const std::string films = folder.path().string();
  for (const std::string kind : {"cats", "dogs"}) {
    std::filesystem::create_directory(folder / kind);
    for (const std::string name : {"1.mp4", "2.mkv"})
      penstock_test::write_film(folder, {kind + "/" + name, "", "-c:v libx264 -pix_fmt yuv420p", 80});
  }
  // clang-format off
  auto loader =
      ps::directory(films) | ps::decode<ps::field<"bytes", ps::video>> |
      ps::map<"bytes">(ps::random_clip(16, {.stride = 4}), ps::random_resized_crop(112),
                       ps::horizontal_flip(), ps::normalize(ps::imagenet), ps::to_chw()) |
      ps::shuffle(ps::seed(7)) | ps::batch(4);
  // clang-format on
  std::size_t batches = 0;
  for (auto&& batch : loader.epoch(0)) {
    CHECK(ps::get<"bytes">(batch).shape() == ps::extents(4, 16, 3, 112, 112));
    ++batches;
  }
  CHECK(batches == 1);
  // clang-format off
  auto lengths = ps::directory(films) | ps::decode<ps::field<"bytes", ps::video>> |
                 ps::map<"bytes">([](const ps::film_facts& film) { return film.frames; });
  // clang-format on
  for (auto&& film : lengths.epoch(0)) CHECK(ps::get<"bytes">(film) == 80);
}
