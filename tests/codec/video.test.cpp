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

#include <sys/resource.h>

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

/// A number of four bytes, the highest first.
std::string big(std::uint64_t value, std::size_t bytes = 4) {
  std::string text;
  for (std::size_t i = bytes; i-- > 0;) text += static_cast<char>(value >> 8 * i & 255);
  return text;
}
std::string box(std::string_view type, const std::string& content) {
  return big(content.size() + 8) + std::string(type) + content;
}
void put(byte_vector& file, std::size_t at, std::string_view bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) file[at + i] = static_cast<std::byte>(bytes[i]);
}
/// What a file is refused with when it is opened.
codec_test::thrown refused(const byte_vector& file, const ps::video& codec = {}) {
  return caught([&] { static_cast<void>(open_film(file, codec).film()); });
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
  const std::string x264 = "-c:v libx264 -g 10 -bf 2 -pix_fmt yuv420p";
  for (const film_kind& kind : std::vector<film_kind>{
           {"end.mp4", "libx264", x264, 40},
           {"front.mp4", "libx264", x264 + " -movflags +faststart", 40},
           {"parts.mp4", "libx264", x264 + " -movflags frag_keyframe+empty_moov", 40},
           {"a.mkv", "libx264", x264, 40},
           {"hevc.mkv", "libx265", "-c:v libx265 -x265-params keyint=10:log-level=error -pix_fmt yuv420p",
            30},
           {"vp8.webm", "libvpx", "-c:v libvpx -g 10 -auto-alt-ref 1 -lag-in-frames 8 -b:v 200k", 30},
           {"vp9.webm", "libvpx-vp9", "-c:v libvpx-vp9 -g 10 -cpu-used 8 -b:v 200k -pix_fmt yuv420p", 30},
           {"av1.mkv", "libaom-av1", "-c:v libaom-av1 -g 10 -cpu-used 8 -row-mt 0 -b:v 200k -pix_fmt yuv420p",
            20},
           {"mpeg4.mp4", "mpeg4", "-c:v mpeg4 -g 10 -bf 2 -q:v 4 -movflags +faststart", 30},
           {"mpeg2.mkv", "mpeg2video", "-c:v mpeg2video -g 10 -bf 2 -q:v 4", 30},
           {"mjpeg.mov", "mjpeg", "-c:v mjpeg -q:v 9 -movflags +faststart", 20},
           {"ffv1.mkv", "ffv1", "-c:v ffv1 -g 1 -pix_fmt yuv420p", 10}}) {
    if (!penstock_test::have_encoder(kind.encoder)) continue;
    const byte_vector file = file_bytes(penstock_test::write_film(folder, kind));
    open_film whole(file);
    std::vector<std::uint32_t> numbers(kind.frames);
    std::iota(numbers.begin(), numbers.end(), 0u);
    const byte_vector all = whole.frames(numbers);
    const std::size_t one = 160 * 96 * 3;
    const ps::frame_index& index = whole.scratch.reader().index();
    std::size_t recovered = 0;
    for (std::size_t cut = 0; cut < 40; ++cut) {
      const byte_vector part(file.begin(),
                             file.begin() + static_cast<std::ptrdiff_t>(file.size() * cut / 40));
      INFO(kind.name << ", the first " << part.size() << " of " << file.size() << " bytes");
      const codec_test::thrown failure = refused(part);
      CHECK(failure.code == ps::errc::format);
      CHECK(failure.line.find("bytes") != std::string::npos);

      // The frames before the cut are there, and right, and the film is counted.
      std::uint32_t there = 0;
      const auto lacks = [&](std::uint32_t frame) {
        for (std::uint32_t p = index.packets_for(frame).first; p <= index.packets_for(frame).last; ++p)
          if (index.packets()[p].offset + index.packets()[p].size > part.size()) return true;
        return false;
      };
      while (there < kind.frames && !lacks(there)) ++there;
      open_film recovering(part, {.recover = true});
      std::uint64_t frames = 0;
      if (!caught([&] { frames = recovering.film().frames(); }).line.empty()) frames = 0;
      if (kind.name != "end.mp4") CHECK(frames + 2 >= there);
      if (frames == 0 || there == 0) continue;
      CHECK(recovering.scratch.warnings == 1);
      const auto last = static_cast<std::uint32_t>(std::min<std::uint64_t>(frames, there) - 1);
      CHECK(recovering.frames({0, last}) == penstock_test::chosen_frames(all, one, {0, last}));
      ++recovered;
    }
    CHECK((kind.name == "end.mp4" || recovered > 20));
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
    if (name != "a.mp4") continue;
    // FFmpeg takes a header from a box that is free, too.
    for (open_film* const one_of : {&first, &other})
      std::memcpy(one_of->bytes.data() + place_of(one_of->bytes, "moov", 0), "free", 4);
    CHECK_FALSE(ps::detail::film_identity_of(other.bytes, container) ==
                ps::detail::film_identity_of(first.bytes, container));
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

TEST_CASE("damage in FFV1 is an error, though FFmpeg shows the frame", "[codec][video]") {
  if (!penstock_test::have_ffmpeg() || !penstock_test::have_encoder("ffv1")) return;
  const temp_dir folder;
  const auto path = penstock_test::write_film(
      folder, {"a.mkv", "", "-c:v ffv1 -level 3 -g 1 -slices 4 -pix_fmt yuv420p", 5});
  for (const bool checksums : {true, false}) {
    const auto made = checksums
                          ? path
                          : penstock_test::write_film(
                                folder, {"b.mkv", "", "-c:v ffv1 -level 3 -g 1 -slices 4 -slicecrc 0", 5});
    byte_vector file = file_bytes(made);
    const byte_vector all = open_film(file).frames({0, 1, 2, 3, 4});
    open_film opened(file);
    REQUIRE(opened.film().frames() == 5);
    const ps::film_packet third = opened.scratch.reader().index().packets()[2];
    file[third.offset + (checksums ? third.size / 2 : third.size - 2)] ^= std::byte{1};
    open_film damaged(file);
    CHECK(damaged.frames({3, 1}) == penstock_test::chosen_frames(all, 160 * 96 * 3, {3, 1}));
    CHECK(caught([&] { static_cast<void>(damaged.frames({2})); }).line.find("cannot be decoded") !=
          std::string::npos);
    open_film recovering(file, {.recover = true});
    CHECK((recovering.frames({2}) == byte_vector(160 * 96 * 3)));
    CHECK(recovering.scratch.warnings == 1);
  }
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

TEST_CASE("an mp4 film of fragments does not lose frames in silence", "[codec][video]") {
  if (!penstock_test::have_ffmpeg() || !penstock_test::have_encoder("libx264")) return;
  const temp_dir folder;
  const std::string options =
      "-c:v libx264 -g 10 -bf 2 -pix_fmt yuv420p -movflags frag_keyframe+empty_moov+default_base_moof";
  const byte_vector file = file_bytes(penstock_test::write_film(folder, {"a.mp4", "", options, 60}));
  REQUIRE(open_film(file).film().frames() == 60);
  std::vector<std::size_t> fragments{place_of(file, "moof", 0)};
  while (fragments.back() != file.size()) fragments.push_back(place_of(file, "moof", fragments.back() + 4));
  REQUIRE(fragments.size() == 7);
  const auto damaged = [&](const byte_vector& bytes, std::uint64_t frames) {
    const codec_test::thrown failure = refused(bytes);
    CHECK(failure.code == ps::errc::format);
    CHECK(failure.line.find("the video file is damaged: its container's parts do not fit together here") !=
          std::string::npos);
    CHECK(failure.line.find("offset") != std::string::npos);
    open_film recovering(bytes, {.recover = true});
    CHECK(recovering.film().frames() == frames);
    CHECK(recovering.scratch.warnings == 1);
  };
  for (const std::string_view part : {"moof", "traf", "tfhd", "trun"}) {
    INFO(part);
    byte_vector bytes = file;
    put(bytes, place_of(file, part, fragments[2]), "tres");
    damaged(bytes, 50);
  }
  byte_vector bytes = file;
  put(bytes, place_of(file, "tfhd", fragments[2]) + 8, big(77));  // a track that there is not
  damaged(bytes, 50);
  bytes = file;
  put(bytes, place_of(file, "trun", fragments[2]) + 8, big(7));
  damaged(bytes, 50);
  bytes.assign(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(fragments[2]) - 4);
  bytes.insert(bytes.end(), file.begin() + static_cast<std::ptrdiff_t>(fragments[3]) - 4, file.end());
  damaged(bytes, 50);  // one is not there, and the numbers say so
  // An index says how long the film is, so that whole fragments are missed at its end.
  bytes = file_bytes(penstock_test::write_film(folder, {"b.mp4", "", options + "+dash+global_sidx", 60}));
  REQUIRE(open_film(bytes).film().frames() == 60);
  std::size_t last = 0;
  for (std::size_t at = 0; at != bytes.size(); at = place_of(bytes, "moof", at + 1)) last = at;
  bytes.resize(last - 4);
  CHECK(refused(bytes).line.find("the video file is truncated: it has") != std::string::npos);
  open_film recovering(bytes, {.recover = true});
  CHECK(recovering.film().frames() == 50);
  CHECK(recovering.scratch.warnings == 1);
}

TEST_CASE("times in the order of decoding are seen when frames come out", "[codec][video]") {
  if (!penstock_test::have_ffmpeg() || !penstock_test::have_encoder("libx264")) return;
  const temp_dir folder;
  const auto right = penstock_test::write_film(
      folder, {"a.mkv", "", "-c:v libx264 -x264-params b-adapt=0:bframes=2 -pix_fmt yuv420p", 30});
  const auto wrong = penstock_test::write_film(folder, {"b.mkv", "", "-c copy -bsf:v setts=pts=DTS", 0, 160,
                                                        96, "-i " + penstock_test::quoted_path(right)});
  open_film opened(file_bytes(wrong));
  const codec_test::thrown failure = caught([&] { static_cast<void>(opened.frames({0, 9, 20})); });
  CHECK(failure.code == ps::errc::format);
  CHECK(failure.line.find("the file's times are those of decoding; encode it again") != std::string::npos);
  open_film recovering(file_bytes(wrong), {.recover = true});
  CHECK(recovering.frames({0, 9, 20}).size() == 3 * 160 * 96 * 3);
  CHECK(recovering.scratch.warnings == 1);
}

TEST_CASE("boxes that claim more than they hold are refused before FFmpeg reads them", "[codec][video]") {
  const auto extent = [](const std::string& moov, const std::string& behind = "") {
    return ps::detail::mp4_boxes::extent_of(ps::bytes_of(box("ftyp", "isom") + box("moov", moov) + behind));
  };
  const auto track = [](const std::string& tables) { return box("trak", box("mdia", tables)); };
  const std::string none(4, '\0'), many = big(0xffff'ffff);
  const std::uint64_t nowhere = ps::detail::film_extent::nowhere;
  CHECK(extent(track(box("stsz", none + big(0) + big(2) + big(5) + big(6)))).claimed == 0);
  CHECK(extent(track(box("stsz", none + big(0) + big(2) + big(5) + big(6)))).damage == nowhere);
  CHECK(extent(track(box("stsz", none + big(1) + many))).claimed == 0xffff'ffff);
  for (const std::string_view type : {"stts", "ctts", "stsc", "stss", "stps", "stco", "co64"}) {
    INFO(type);
    const ps::detail::film_extent found = extent(track(box(type, none + many)));
    CHECK(found.damage != nowhere);
    CHECK(found.claimed == 0xffff'ffff);
  }
  // Each of 1,000 edits has all of 5,000 frames, whose sizes are there.
  std::string edits = none + big(1'000);
  for (int i = 0; i < 1'000; ++i) edits += big(5'000) + big(0) + big(1 << 16);
  const std::string sizes = box("stsz", none + big(0) + big(5'000) + std::string(20'000, '\1'));
  CHECK(extent(track(sizes + box("edts", box("elst", edits)))).claimed == 5'000'000);
  // Plain samples of sound are taken 1,024 at a time.
  const std::string sound = box("hdlr", none + none + "soun") + box("stts", none + big(1) + big(9) + big(1)) +
                            box("stsz", none + big(2) + many) + box("stco", none + big(2) + big(8) + big(8));
  CHECK(extent(track(sound + box("stsc", none + big(1) + big(1) + big(10'000) + big(1)))).claimed == 20);
  CHECK(extent(track(sound + box("stsc", none + big(1) + big(1) + many + big(1)))).claimed == 2u << 22);
  // Runs of frames that take no bytes.
  const std::string fragment = box("traf", box("tfhd", none + big(1)) + box("trun", none + many));
  CHECK(extent(track("") + box("mvex", box("trex", none + big(1))),
               box("moof", box("mfhd", none + big(1)) + fragment))
            .claimed == 0x1'0000'0000);
  // What unpacks, and what hides among descriptions of samples.
  CHECK(extent(box("cmov", "")).claimed > 0xffff'ffff);
  CHECK(extent(track(box("stsd", none + big(1) + box("avc1", box("stsz", none + big(1) + many))))).claimed >
        0xffff'ffff);
  CHECK(extent(track(box("stsd", none + big(1) + box("mebx", box("keys", many))))).damage == nowhere);
  CHECK(extent(track(box("stts", ""))).claimed > 0xffff'ffff);
  std::string names;
  for (int i = 0; i < 2'000; ++i) names += box("\xa9nam", big(4) + "name");
  CHECK(extent(box("udta", names)).claimed == 2'000 * 2'001 / 2);
  std::string tags;
  for (int i = 0; i < 2'000; ++i) tags += "\x67\xc8\x81x";
  const std::string mkv = "\x18\x53\x80\x67\xff\x12\x54\xc3\x67\x01" + big(tags.size(), 7) + tags;
  CHECK(ps::detail::matroska_extent(ps::bytes_of(mkv)).claimed == 2'000 * 2'001 / 2);
  CHECK(ps::detail::matroska_extent(ps::bytes_of("\xff" + mkv.substr(5))).claimed == 2'000 * 2'001 / 2);
  for (const std::string_view type : {"mvhd", "mdhd"}) {
    CHECK(extent(box(type, std::string(20, '\0'))).damage != nowhere);  // a second has 0 units
    CHECK(extent(box(type, std::string(12, '\0') + big(1) + none)).damage == nowhere);
  }
}

TEST_CASE("bombs of films are one error, and take little memory", "[codec][video]") {
  if (!penstock_test::have_ffmpeg() || !penstock_test::have_encoder("libx264")) return;
  const temp_dir folder;
  const byte_vector file = file_bytes(
      penstock_test::write_film(folder, {"a.mp4", "", "-c:v libx264 -g 20 -bf 2 -pix_fmt yuv420p", 20}));
  const auto memory = [] {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    return used.ru_maxrss / 1024;
  };
  REQUIRE(open_film(file).film().frames() == 20);
  const auto before = memory();
  const auto with = [&](std::string_view type, std::size_t at, std::string_view bytes) {
    byte_vector bomb = file;
    put(bomb, place_of(file, type, place_of(file, "trak", 0)) + at, bytes);
    return bomb;
  };
  const std::string many = big(0xffff'ffff);
  CHECK(refused(with("avc1", 28, many)).code == ps::errc::limit);  // 65,535 x 65,535
  CHECK(refused(with("stsz", 8, big(1) + many)).line.find("frames or names; to allow it, set .limits") !=
        std::string::npos);
  CHECK(refused(with("stsz", 8, big(0) + big(0))).line.find("the video file has no frames") !=
        std::string::npos);
  CHECK(refused(with("mdhd", 16, big(0))).line.find("do not fit together here") != std::string::npos);
  // A film of centuries is a film.
  open_film slow(with("stts", 16, big(0x7fff'ffff)));
  CHECK(slow.frames({0}).size() == 160 * 96 * 3);
  // No frame is longer than nothing: those that are decoded later are shown earlier.
  open_film still(with("stts", 16, big(0)));
  CHECK_FALSE(caught([&] { static_cast<void>(still.frames({0, 19})); }).line.empty());
  // 65,536 x 65,536 in the parameters of H.264.
  byte_vector bomb = file;
  put(bomb, place_of(file, "avcC", 0) + 12, {"\x67\x42\0\x3e\xda\0\x04\0\0\x03\x02\0\x19\0\0\0", 16});
  CHECK(caught([&] { static_cast<void>(open_film(bomb).frames({0})); }).code == ps::errc::format);
  if (penstock_test::have_encoder("libvpx-vp9")) {
    bomb = file_bytes(penstock_test::write_film(folder, {"a.webm", "", "-c:v libvpx-vp9 -cpu-used 8", 3}));
    open_film opened(bomb);
    REQUIRE(opened.film().frames() == 3);
    const std::size_t at = ps::detail::to_size(opened.scratch.reader().index().packets()[0].offset);
    for (std::size_t bit = 36; bit < 68; ++bit) bomb[at + bit / 8] |= std::byte{0x80} >> bit % 8;
    CHECK(caught([&] { static_cast<void>(open_film(bomb).frames({0})); }).code == ps::errc::format);
  }
  CHECK(memory() - before < 100);
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
  const std::size_t data = place_of(file, "mdat", 0), moov = place_of(file, "moov", data);
  for (std::size_t sizes = place_of(file, "stsz", moov); sizes != file.size();
       sizes = place_of(file, "stsz", sizes + 4))
    for (std::size_t i = 0; i < 50; ++i) put(file, sizes + 16 + 4 * i, big(moov - 4 - (data + 4)));
  for (std::size_t places = place_of(file, "stco", moov); places != file.size();
       places = place_of(file, "stco", places + 4))
    for (std::size_t i = 0; i < 50; ++i) put(file, places + 12 + 4 * i, big(data + 4));
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
