// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/png.hpp>
#include <penstock/codec/png_encoder.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/count_allocations.hpp"
#include "support/image_codec_test.hpp"

#include <cstddef>
#include <cstdint>

namespace ps = penstock;
using codec_test::byte_vector;
using codec_test::caught;
using codec_test::to_vector;
using image_codec_test::copied;
using penstock_test::contains;

TEST_CASE("codec/png_encoder: what it writes decodes to the same pixels, at each level, from pitched rows") {
  const auto wide = image_codec_test::some_picture<std::uint16_t>({90, 70}, 4, 3);
  ps::png_encoder encoder;
  ps::png_scratch scratch;
  std::size_t sizes[10] = {};
  for (int level = 0; level <= 9; ++level) {
    const ps::image_part part{11, 7, 40, 50};
    const byte_vector file = to_vector(encoder.encode(wide.view<4>().part(part), {.level = level}));
    sizes[level] = file.size();
    const auto image = ps::png_as<ps::rgba16>{}.decode(file, scratch);
    CHECK(copied(image.read(ps::whole_of(image.size()))) == wide.part(part));
    CHECK(to_vector(encoder.encode(wide.view<4>().part(part), {.level = level})) == file);
  }
  CHECK(sizes[9] < sizes[0]);
}

TEST_CASE("codec/png_encoder: an image without pixels and an unknown level are errors") {
  ps::png_encoder encoder;
  const std::uint8_t pixel = 7;
  const auto refused = [&](ps::image_size size, int level) {
    const ps::pixel_view<std::uint8_t, 1> view(&pixel, size);
    return caught([&] { static_cast<void>(encoder.encode(view, {.level = level})); });
  };
  CHECK_THAT(refused({0, 1}, 1).line, contains("0 x 1"));
  CHECK(refused({1, 0}, 1).code == ps::errc::argument);
  CHECK_THAT(refused({1, 1}, -1).line, contains("level -1"));
  CHECK_THAT(refused({1, 1}, 10).line, contains("level 10"));
  CHECK(refused({1, 1}, 9).line.empty());
}

TEST_CASE("codec/png_encoder: keeps its memory, and each failing allocation is one exception") {
  const auto pixels = image_codec_test::some_picture<std::uint8_t>({50, 40}, 3, 3);
  ps::png_encoder encoder;
  const auto write = [&](ps::png_encoder& with) {
    static_cast<void>(with.encode(pixels.view<3>(), {.shown = ps::orientation::flipped}));
  };
  CHECK(penstock_test::fail_each_allocation([&] {
          ps::png_encoder fresh;
          write(fresh);
          write(encoder);
        }) > 5);
  CHECK(penstock_test::allocations_of([&] { write(encoder); }) == 0);
  ps::png_scratch scratch;
  const byte_vector file = to_vector(encoder.encode(pixels.view<3>()));
  const auto image = ps::png{}.decode(file, scratch);
  CHECK(copied(image.read(ps::whole_of(image.size()))) == pixels);
}
