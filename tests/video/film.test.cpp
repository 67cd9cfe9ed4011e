// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/image/crop.hpp>
#include <penstock/image/lazy_image.hpp>
#include <penstock/image/to_chw.hpp>
#include <penstock/video/film.hpp>

#include "support/catch.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace ps = penstock;

namespace film_test {

/// A film of 5 frames of 2 x 1 pixels; pixel x of frame n is (10 n + x, n, x).
struct small_film {
  using is_lazy_film = void;
  std::array<std::uint8_t, 6>* pixels;
  ps::buffer* own;

  [[nodiscard]] ps::film_facts facts() const { return {5, {2, 1}, 1, 0, 5}; }
  [[nodiscard]] std::uint64_t frame_at(double seconds) const { return static_cast<std::uint64_t>(seconds); }
  [[nodiscard]] ps::shown_image<std::uint8_t, 3> picture() const {
    return ps::shown_image<std::uint8_t, 3>(ps::pixel_view<std::uint8_t, 3>(pixels->data(), {2, 1}));
  }
  [[nodiscard]] ps::buffer& memory() const { return *own; }
  void each_of(std::span<const std::uint32_t> frames, const auto& draw) const {
    for (std::size_t i = frames.size(); i-- > 0;) {
      const auto n = static_cast<std::uint8_t>(frames[i]);
      *pixels = {static_cast<std::uint8_t>(10 * n), n, 0, static_cast<std::uint8_t>(10 * n + 1), n, 1};
      draw(i);
    }
  }
};
using small_clip = ps::film_clip<small_film, ps::shown_image<std::uint8_t, 3>>;

}  // namespace film_test

static_assert(ps::lazy_film<film_test::small_film> && !ps::lazy_film<int>);
static_assert(ps::placed_expression<film_test::small_clip> && ps::unfinished<film_test::small_clip>);

TEST_CASE("a clip is its frames, one behind the other", "[video][film]") {
  std::array<std::uint8_t, 6> pixels{};
  ps::buffer memory;
  const film_test::small_film film{&pixels, &memory};
  const std::vector<std::uint32_t> frames{4, 0, 4};
  const film_test::small_clip clip(film, {frames.data(), frames.size()}, film.picture());
  CHECK(clip.shape() == ps::extents(3, 1, 2, 3));
  CHECK(clip.frames().size() == 3);
  const std::vector<std::uint8_t> expected{40, 4, 0, 41, 4, 1, 0, 0, 0, 1, 0, 1, 40, 4, 0, 41, 4, 1};
  const auto whole = clip.finish();
  CHECK(whole.shape() == clip.shape());
  CHECK(std::vector<std::uint8_t>(whole.values().begin(), whole.values().end()) == expected);

  // To a destination with gaps: frames two apart, which leaves what lies between as it was.
  std::vector<std::uint8_t> apart(36, 255);
  ps::element_strides strides = ps::dense_strides(clip.shape());
  strides[0] = 12;
  clip.write_to(ps::destination<std::uint8_t>(apart.data(), clip.shape(), strides));
  for (std::size_t f = 0; f < 3; ++f)
    for (std::size_t i = 0; i < 12; ++i) CHECK(apart[f * 12 + i] == (i < 6 ? expected[f * 6 + i] : 255));
}

TEST_CASE("an operation that is applied to a clip is called once", "[video][film]") {
  std::array<std::uint8_t, 6> pixels{};
  ps::buffer memory;
  const film_test::small_film film{&pixels, &memory};
  const std::vector<std::uint32_t> frames{1, 2};
  const film_test::small_clip clip(film, {frames.data(), frames.size()}, film.picture());
  ps::image_scratch scratch;
  const ps::call<ps::image_scratch> c{{}, 0, 0, 0, scratch};
  int calls = 0;
  const auto right = clip.with(
      [&](const auto& image, const auto& call) {
        ++calls;
        return ps::crop(1, 0, 1, 1)(image, call);
      },
      c);
  CHECK(calls == 1);
  CHECK(right.shape() == ps::extents(2, 1, 1, 3));
  const auto planes = right.with(ps::to_chw(), c);
  CHECK(planes.shape() == ps::extents(2, 3, 1, 1));
  const auto values = planes.finish();
  CHECK(std::vector<std::uint8_t>(values.values().begin(), values.values().end()) ==
        std::vector<std::uint8_t>{11, 1, 1, 21, 2, 1});
}
