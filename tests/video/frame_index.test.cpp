// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/video/frame_index.hpp>

#include "support/catch.hpp"

#include <limits>
#include <vector>

namespace ps = penstock;

namespace {

/// I0 P3 B1 B2 | I6 B4 B5 P9 B7 B8, of which 4 and 5 need both groups.
ps::frame_index open_groups() {
  ps::frame_index film(10);
  for (const auto& [time, key] : std::vector<std::pair<std::int64_t, bool>>{{0, true},
                                                                            {3, false},
                                                                            {1, false},
                                                                            {2, false},
                                                                            {6, true},
                                                                            {4, false},
                                                                            {5, false},
                                                                            {9, false},
                                                                            {7, false},
                                                                            {8, false}})
    film.add({.time = time, .duration = 1, .key = key});
  film.finish();
  return film;
}

}  // namespace

TEST_CASE("frames are numbered as they are shown", "[video][frame_index]") {
  const ps::frame_index film = open_groups();
  REQUIRE(film.frames() == 10);
  for (std::uint32_t f = 0; f < 10; ++f) {
    CHECK(film.packets()[film.packet_of(f)].time == f);
    CHECK(film.frame_of(film.packet_of(f)) == f);
    CHECK(film.time_of(f) == Approx(f / 10.0).margin(1e-12));
  }
  CHECK(film.reordered() == 1);
  CHECK(film.begin_time() == 0);
  CHECK(film.end_time() == Approx(1));
}

TEST_CASE("a frame needs its group, and the one before if it is shown before its key frame",
          "[video][frame_index]") {
  const ps::frame_index film = open_groups();
  CHECK(film.packets_for(0) == ps::decode_range{0, 0});
  CHECK(film.packets_for(2) == ps::decode_range{0, 3});
  CHECK(film.packets_for(4) == ps::decode_range{0, 5});
  CHECK(film.packets_for(5) == ps::decode_range{0, 6});
  CHECK(film.packets_for(6) == ps::decode_range{4, 4});
  CHECK(film.packets_for(8) == ps::decode_range{4, 9});
  CHECK(film.earlier(4, 1) == 0);
  CHECK(film.earlier(4, 100) == 0);
  CHECK(film.earlier(0, 1) == 0);
}

TEST_CASE("a frame is shown until the next one is", "[video][frame_index]") {
  ps::frame_index film(4);  // at 1 s, 1.25 s and 2 s, the last one for 0.5 s
  film.add({.time = 4, .key = true}).add({.time = 8, .duration = 2}).add({.time = 5}).finish();
  CHECK(film.frame_at(0.99) == 3);
  CHECK(film.frame_at(1) == 0);
  CHECK(film.frame_at(1.2) == 0);
  CHECK(film.frame_at(1.25) == 1);
  CHECK(film.frame_at(1.99) == 1);
  CHECK(film.frame_at(2.49) == 2);
  CHECK(film.frame_at(2.5) == 3);
  CHECK(film.frame_at(-1.0 / 0.0) == 3);
  CHECK(film.frame_at(0.0 / 0.0) == 3);
}

TEST_CASE("a frame is shown at the second that is its time", "[video][frame_index]") {
  std::size_t wrong = 0;
  const auto check = [&](ps::frame_index& film, int units, int seconds, int step) {
    film.clear(units, seconds);
    for (int n = 0; n < 1'000; ++n) film.add({.time = n * step, .duration = step, .key = true});
    film.finish();
    for (std::uint32_t n = 0; n < 1'000; ++n) {
      const double time = static_cast<double>(n) * step * seconds / units;
      wrong += film.time_of(n) == time && film.frame_at(time) == n ? 0 : 1;
    }
  };
  ps::frame_index film;
  check(film, 12'800, 1, 512);
  check(film, 90'000, 1, 3'000);
  check(film, 24'000, 1'001, 1);
  CHECK(wrong == 0);
  // Times of damaged files.
  film.clear(1);
  film.add({.time = std::numeric_limits<std::int64_t>::min() + 1})
      .add({.time = std::numeric_limits<std::int64_t>::max()})
      .finish();
  CHECK(film.end_time() > film.begin_time());
}

TEST_CASE("packets that are not shown are no frames, and are decoded", "[video][frame_index]") {
  ps::frame_index film(25);
  film.add({.time = -2, .key = true, .shown = false})
      .add({.time = -1, .shown = false})
      .add({.time = 0})
      .finish();
  REQUIRE(film.frames() == 1);
  CHECK(film.packets_for(0) == ps::decode_range{0, 2});
  film.clear(1);
  film.finish();
  CHECK(film.frames() == 0);
  CHECK(film.end_time() == 0);
  CHECK(film.frame_at(0) == 0);
  // Without any key frame decoding begins at the first packet.
  film.add({.time = 0}).add({.time = 1}).finish();
  CHECK(film.packets_for(1) == ps::decode_range{0, 1});
}
