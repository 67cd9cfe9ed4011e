// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/image.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/map_fields.hpp>
#include <penstock/stage/seed.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/video/clip.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace ps = penstock;
using codec_test::caught;
using numbers = std::vector<std::uint32_t>;

namespace made_film {

/// The frames of a film of `count` frames of 4 x 3 pixels, ten a second: all of frame n is the value n, but
/// for its left column, which is 200 + n.
struct film {
  using unfinished = void;
  using is_lazy_film = void;
  struct scratch {
    std::vector<std::uint8_t> pixels = std::vector<std::uint8_t>(36);
    ps::buffer memory;
    int decoded = 0;
  };
  std::uint32_t count;
  scratch* own;

  [[nodiscard]] ps::film_facts facts() const { return {count, {4, 3}, 10, 0, count / 10.0}; }
  [[nodiscard]] ps::film_facts finish() const { return facts(); }
  [[nodiscard]] std::uint64_t frame_at(double seconds) const {
    return seconds < 0 || seconds >= count / 10.0 ? count : static_cast<std::uint64_t>(seconds * 10 + 1e-9);
  }
  [[nodiscard]] ps::shown_image<std::uint8_t, 3> picture() const {
    return ps::shown_image<std::uint8_t, 3>(ps::pixel_view<std::uint8_t, 3>(own->pixels.data(), {4, 3}));
  }
  [[nodiscard]] ps::buffer& memory() const { return own->memory; }
  template <class Draw>
  void each_of(std::span<const std::uint32_t> frames, const Draw& draw) const {
    for (std::size_t i = frames.size(); i-- > 0;) {  // in any order
      for (std::size_t p = 0; p < 36; ++p)
        own->pixels[p] = static_cast<std::uint8_t>(frames[i] + (p % 12 < 3 ? 200 : 0));
      ++own->decoded;
      draw(i);
    }
  }
};

template <class Operation>
numbers chosen(const Operation& operation, std::uint32_t count, std::uint64_t index = 0) {
  film::scratch memory;
  ps::frames_scratch scratch;
  const auto clip =
      operation(film{count, &memory}, ps::call<ps::frames_scratch>{{0, index}, 0, 7, 1, scratch});
  CHECK(memory.decoded == 0);
  return {clip.frames().begin(), clip.frames().end()};
}

struct as_film {
  using accepts_call = void;
  using scratch = made_film::film::scratch;
  film operator()(int count, const ps::call<scratch>& c) const {
    return {static_cast<std::uint32_t>(count), &c.scratch};
  }
};

/// A film with its bright column as a mask, as a box for all frames, and as a box for each of six.
struct as_sample {
  using accepts_call = void;
  using mask = ps::shown_image<std::uint8_t, 1>;
  struct scratch {
    made_film::film::scratch film;
    std::vector<std::uint8_t> pixels = {1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0};
    std::vector<float> boxes;
  };
  auto operator()(int count, const ps::call<scratch>& c) const {
    scratch& s = c.scratch;
    s.boxes.clear();
    for (int frame = 0; frame < 6; ++frame) s.boxes.insert(s.boxes.end(), {0, 0, 1, 3});
    using boxes = ps::tensor_view<const float>;
    return ps::record<ps::field<"mp4", film>, ps::field<"png", mask>, ps::field<"boxes", boxes>,
                      ps::field<"each", boxes>>(
        film{static_cast<std::uint32_t>(count), &s.film},
        mask(ps::pixel_view<std::uint8_t, 1>(s.pixels.data(), {4, 3})),
        boxes(s.boxes.data(), ps::extents(1, 4)), boxes(s.boxes.data(), ps::extents(6, 1, 4)));
  }
};

}  // namespace made_film

using made_film::chosen;

static_assert(ps::lazy_film<made_film::film>);
static_assert(ps::placed_expression<ps::film_clip<made_film::film, ps::shown_image<std::uint8_t, 3>>>);

TEST_CASE("clips take frames as TorchCodec's samplers do", "[video][clip]") {
  CHECK(chosen(ps::clip(4), 10) == numbers{0, 1, 2, 3});
  CHECK(chosen(ps::clip(4, {.stride = 3, .at = 0}), 10) == numbers{0, 3, 6, 9});
  CHECK(chosen(ps::clip(5, {.stride = 3, .at = 2}), 10) == numbers{2, 5, 8, 8, 8});
  CHECK(chosen(ps::clip(5, {.stride = 3, .at = 2, .policy = ps::clip_policy::wrap}), 10) ==
        numbers{2, 5, 8, 2, 5});
  CHECK(caught([] {
          chosen(ps::clip(5, {.stride = 3, .at = 2, .policy = ps::clip_policy::error}), 10);
        }).code == ps::errc::shape);
  CHECK(caught([] { chosen(ps::clip(1, {.at = 10}), 10); }).code == ps::errc::shape);
  CHECK(caught([] { chosen(ps::clip(1), 0); }).code == ps::errc::shape);
  CHECK(caught([] { static_cast<void>(ps::clip(0)); }).code == ps::errc::argument);
  CHECK(caught([] { static_cast<void>(ps::clip(-1)); }).code == ps::errc::argument);
  CHECK(caught([] { static_cast<void>(ps::clip(2, {.stride = 0})); }).code == ps::errc::argument);

  CHECK(chosen(ps::uniform_frames(4), 10) == numbers{0, 3, 6, 9});
  CHECK(chosen(ps::uniform_frames(4), 11) == numbers{0, 3, 6, 10});
  CHECK(chosen(ps::uniform_frames(1), 10) == numbers{0});
  CHECK(chosen(ps::uniform_frames(5), 3) == numbers{0, 0, 1, 1, 2});
  CHECK(chosen(ps::frames_at({9, 0, 9}), 10) == numbers{9, 0, 9});
  CHECK(caught([] {
          chosen(ps::frames_at({9, 10}), 10);
        }).line.find("frame 10 of a film of 10 frames") != std::string::npos);
  CHECK(caught([] { static_cast<void>(ps::frames_at(std::vector<std::uint64_t>{})); }).code ==
        ps::errc::argument);
  CHECK(chosen(ps::frames_played_at({0.95, 0.0, 0.29}), 10) == numbers{9, 0, 2});
  CHECK(caught([] {
          chosen(ps::frames_played_at({1.0}), 10);
        }).line.find("no frame is shown at 1.000000 s") != std::string::npos);
}

TEST_CASE("a random clip begins anywhere that it ends within the film", "[video][clip]") {
  std::vector<int> begins(10);
  for (std::uint64_t i = 0; i < 400; ++i) {
    const numbers frames = chosen(ps::random_clip(3, {.stride = 2}), 10, i);
    REQUIRE(frames.size() == 3);
    REQUIRE(frames[0] <= 5);
    CHECK(frames == numbers{frames[0], frames[0] + 2, frames[0] + 4});
    ++begins[frames[0]];
  }
  for (std::size_t first = 0; first < 6; ++first) CHECK(begins[first] > 30);
  CHECK(chosen(ps::random_clip(3, {.stride = 4}), 5, 3) == numbers{0, 4, 4});
  CHECK(chosen(ps::random_clip(3, {.stride = 4, .policy = ps::clip_policy::wrap}), 5, 3) == numbers{0, 4, 0});
  CHECK(caught([] { chosen(ps::random_clip(3, {.stride = 4, .policy = ps::clip_policy::error}), 5); }).code ==
        ps::errc::shape);
}

TEST_CASE("operations on images apply to all frames of a clip alike", "[video][clip]") {
  const auto films =
      ps::from(std::vector<int>{20, 25, 30, 35, 40, 45, 50, 55}) | ps::map(made_film::as_film());
  SECTION("plain") {
    auto loader = films | ps::map(ps::clip(3, {.stride = 5})) | ps::batch(2);
    std::size_t batches = 0;
    for (auto&& batch : loader.epoch(0)) {
      const auto b = batch.values();
      REQUIRE(b.shape() == ps::extents(2, 3, 3, 4, 3));
      for (std::size_t i = 0; i < 2; ++i)
        for (std::size_t f = 0; f < 3; ++f) {
          CHECK(int{b(i, f, 1, 1, 0)} == int(f) * 5);
          CHECK(int{b(i, f, 2, 0, 2)} == 200 + int(f) * 5);
        }
      ++batches;
    }
    CHECK(batches == 4);
  }
  SECTION("one draw for a clip") {
    auto loader = films |
                  ps::map(ps::random_clip(6), ps::horizontal_flip(), ps::random_crop(2, 3), ps::to_float(),
                          ps::to_chw()) |
                  ps::seed(3) | ps::batch(8);
    std::size_t mirrored = 0, cut = 0;
    for (auto&& batch : loader.epoch(0)) {
      const auto b = batch.values();
      REQUIRE(b.shape() == ps::extents(8, 6, 3, 2, 3));
      for (std::size_t i = 0; i < 8; ++i) {
        const auto bright = [&](std::size_t f, std::size_t x) { return b(i, f, 0, 0, x) * 255 > 199; };
        mirrored += bright(0, 2) ? 1 : 0;
        cut += bright(0, 0) || bright(0, 2) ? 0 : 1;
        for (std::size_t f = 0; f < 6; ++f) {
          for (const std::size_t x : {0u, 2u}) CHECK(bright(f, x) == bright(0, x));
          CHECK(b(i, f, 0, 0, 1) * 255 == Approx(b(i, 0, 0, 0, 1) * 255 + static_cast<float>(f)));
        }
      }
    }
    CHECK(mirrored > 0);
    CHECK(mirrored < 8);
    CHECK(cut > 0);
  }
  SECTION("boxes and masks follow the frames of a clip") {
    const std::vector<int> counts{20, 25, 30, 35, 40, 45, 50, 55};
    auto loader = ps::from(counts) | ps::map(made_film::as_sample()) | ps::map<"mp4">(ps::random_clip(6)) |
                  ps::map<"mp4", ps::as_mask<"png">, ps::as_boxes<"boxes">, ps::as_boxes<"each">>(
                      ps::horizontal_flip(), ps::random_crop(3, 3), ps::to_chw()) |
                  ps::seed(3) | ps::batch(8);
    std::size_t empty = 0;
    for (auto&& batch : loader.epoch(0)) {
      const auto frames = ps::get<"mp4">(batch);
      const auto masks = ps::get<"png">(batch);
      const auto boxes = ps::get<"boxes">(batch), boxes_of = ps::get<"each">(batch);
      REQUIRE(boxes_of.shape() == ps::extents(8, 6, 1, 4));
      for (std::size_t i = 0; i < 8; ++i) {
        empty += boxes(i, 0, 0) == boxes(i, 0, 2) ? 1 : 0;
        for (std::size_t x = 0; x < 3; ++x) {
          const auto at = static_cast<float>(x);
          const bool in = at >= boxes(i, 0, 0) && at < boxes(i, 0, 2);
          CHECK((masks(i, 1, x, 0) == 1) == in);
          for (std::size_t f = 0; f < 6; ++f) CHECK((frames(i, f, 0, 1, x) >= 200) == in);
        }
        for (std::size_t f = 0; f < 6; ++f)
          for (std::size_t k = 0; k < 4; ++k) CHECK(boxes_of(i, f, 0, k) == boxes(i, 0, k));
      }
    }
    CHECK(empty > 0);
    CHECK(empty < 8);
  }
  SECTION("a function of one's own gets the facts of a film, and the frames of a clip") {
    auto loader = films | ps::map([](const ps::film_facts& f) { return f.frames; });
    std::uint64_t sum = 0;
    for (auto&& n : loader.epoch(0)) sum += n;
    CHECK(sum == 300);
    auto sums = films | ps::map(ps::clip(2), [](const ps::tensor_view<const std::uint8_t>& t) {
                  return t.shape() == ps::extents(2, 3, 4, 3) ? int{t.values().back()} : -1;
                });
    for (auto&& n : sums.epoch(0)) CHECK(n == 1);
  }
}
