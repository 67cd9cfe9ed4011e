// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/image/lazy_image.hpp>

#include <penstock/core/cached_form.hpp>

#include "support/catch.hpp"
#include "support/test_image.hpp"

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace lazy_image_test {

namespace ps = penstock;
using penstock_test::test_image;

namespace {

/// Copies pixels to a destination with these strides, and compares value by value.
template <class T, std::size_t Channels>
void copies(const test_image<T, Channels>& image, const ps::element_strides& strides, std::size_t room) {
  const ps::image_size size = image.size();
  std::vector<T> values(room, T{77});
  const ps::extents shape(std::size_t{size.height}, std::size_t{size.width}, Channels);
  image.write_to(ps::destination<T>(values.data(), shape, strides));
  std::size_t written = 0;
  for (std::size_t y = 0; y < size.height; ++y)
    for (std::size_t x = 0; x < size.width; ++x)
      for (std::size_t c = 0; c < Channels; ++c, ++written) {
        const auto at = static_cast<std::size_t>(static_cast<std::int64_t>(y) * strides[0] +
                                                 static_cast<std::int64_t>(x) * strides[1] +
                                                 static_cast<std::int64_t>(c) * strides[2]);
        REQUIRE(values[at] == image.at(x, y, c));
        values[at] = T{77};
      }
  for (const T left : values) REQUIRE(left == T{77});  // and the gaps are as they were
}

template <class T, std::size_t Channels>
void copies_everywhere() {
  for (const ps::image_size size : {ps::image_size{1, 1}, {7, 5}, {1, 9}, {16, 1}})
    for (const std::size_t gap : {std::size_t{0}, std::size_t{5}}) {
      const test_image<T, Channels> image(size, 3, gap);
      const auto row = static_cast<std::int64_t>(size.width * Channels);
      const auto channels = static_cast<std::int64_t>(Channels);
      const std::int64_t plane = std::int64_t{size.width} * size.height;
      const std::size_t all = static_cast<std::size_t>(plane) * Channels;
      copies(image, {row, channels, 1}, all);
      copies(image, {row + 3, channels, 1}, all + 3 * size.height);
      copies(image, {static_cast<std::int64_t>(size.width), 1, plane}, all);
      copies(image, {2 * row, 2 * channels, 2}, 2 * all);
    }
}

}  // namespace

TEST_CASE("image/lazy_image: pixels are copied to destinations with any strides") {
  copies_everywhere<std::uint8_t, 1>();
  copies_everywhere<std::uint8_t, 3>();
  copies_everywhere<std::uint16_t, 4>();
  copies_everywhere<float, 3>();
}

TEST_CASE("image/lazy_image: an image is an array of height, width and channels, finished without gaps") {
  const test_image<std::uint8_t, 3> dense({4, 3}, 1), gaps({4, 3}, 1, 2);
  STATIC_REQUIRE(ps::lazy_image<test_image<std::uint8_t, 3>>);
  STATIC_REQUIRE(ps::array_expression<test_image<std::uint8_t, 3>>);
  STATIC_REQUIRE_FALSE(ps::lazy_image<int>);
  CHECK(dense.shape() == ps::extents(3, 4, 3));
  const auto a = dense.finish(), b = gaps.finish();
  CHECK(std::vector<std::uint8_t>(a.flat().begin(), a.flat().end()) ==
        std::vector<std::uint8_t>(b.flat().begin(), b.flat().end()));
  CHECK(a.data() == dense.read(ps::whole_of(dense.size())).data());  // where the pixels are
  CHECK(b(2, 3, 1) == gaps.at(3, 2, 1));
}

TEST_CASE("image/lazy_image: a part is drawn, and no other is read") {
  const test_image<std::uint8_t, 3> image({9, 8}, 5);
  std::vector<std::uint8_t> values(2 * 3 * 3);
  image.draw({4, 1, 3, 2}, ps::destination<std::uint8_t>(values.data(), ps::extents(2, 3, 3)));
  CHECK(image.last_part() == ps::image_part{4, 1, 3, 2});
  for (std::size_t y = 0; y < 2; ++y)
    for (std::size_t x = 0; x < 3; ++x)
      for (std::size_t c = 0; c < 3; ++c) CHECK(values[(y * 3 + x) * 3 + c] == image.at(4 + x, 1 + y, c));
}

TEST_CASE("image/lazy_image: a buffer has room, and keeps it") {
  ps::buffer b;
  auto* const first = ps::room_for<float>(b, 100);
  CHECK(b.size() == 400);
  CHECK(ps::room_for<std::uint8_t>(b, 10) == reinterpret_cast<std::uint8_t*>(first));
  CHECK(b.capacity() >= 400);
}

TEST_CASE("image/lazy_image: an image is kept as its pixels, and parts of them are free") {
  std::vector<std::uint8_t> pixels(5 * 4 * 3);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i);
  using image = ps::shown_image<std::uint8_t, 3>;
  static_assert(ps::lazy_image<image>);
  ps::kept<image> kept;
  ps::make_kept(image(ps::pixel_view<std::uint8_t, 3>(pixels.data(), {5, 4})), kept);
  pixels.assign(pixels.size(), 0);
  static_assert(std::is_same_v<ps::shown_of<image>, image>);
  const image shown = ps::show_cached(kept);
  CHECK(shown.size() == ps::image_size{5, 4});
  CHECK(ps::bytes_of_kept(kept) == 60);
  const auto part = shown.read({1, 2, 3, 2});
  CHECK(part.data() == shown.finish().data() + (2 * 5 + 1) * 3);
  CHECK(*part.at(2, 1) == (3 * 5 + 3) * 3);
  CHECK(&shown.memory() == &shown.memory());
}

}  // namespace lazy_image_test
