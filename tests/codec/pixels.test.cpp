// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/pixels.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/count_allocations.hpp"
#include "support/image_codec_test.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace ps = penstock;
using codec_test::byte_vector;
using codec_test::caught;
using penstock_test::contains;

static_assert(ps::codec<ps::pixels<ps::rgb8>> && ps::codec<ps::pixels<ps::gray16>>);
static_assert(ps::lazy_image<ps::decoded<ps::pixels<ps::rgba16>, ps::bytes_view>>);

namespace pixels_test {

template <class Format>
void check(std::uint64_t seed) {
  using value = typename Format::value_type;
  constexpr std::size_t channels = Format::channels;
  for (const ps::image_size size : {ps::image_size{1, 1}, {1, 7}, {7, 1}, {32, 32}, {19, 23}})
    for (const bool planar : {false, true})
      for (const std::size_t shift : {0u, 1u}) {  // bytes at odd addresses
        CAPTURE(Format::format_name, size.width, size.height, planar, shift);
        const auto expected = image_codec_test::some_picture<value>(size, channels, ++seed);
        std::vector<value> stored = expected.values;
        const std::size_t area = std::size_t{size.width} * size.height;
        for (std::size_t i = 0; i < area && planar; ++i)
          for (std::size_t c = 0; c < channels; ++c) stored[c * area + i] = expected.values[i * channels + c];
        byte_vector bytes(stored.size() * sizeof(value) + shift);
        std::memcpy(bytes.data() + shift, stored.data(), stored.size() * sizeof(value));
        ps::image_scratch scratch;
        const ps::pixels<Format> codec{.width = size.width, .height = size.height, .planar = planar};
        image_codec_test::check_parts(codec.decode(ps::bytes_view(bytes).subspan(shift), scratch), expected,
                                      seed);
      }
}

}  // namespace pixels_test

TEST_CASE("codec/pixels: every format, interleaved and planar, in every part and layout") {
  pixels_test::check<ps::gray8>(1);
  pixels_test::check<ps::rgb8>(2);
  pixels_test::check<ps::rgba8>(3);
  pixels_test::check<ps::gray16>(4);
  pixels_test::check<ps::rgb16>(5);
  pixels_test::check<ps::rgba16>(6);
}

TEST_CASE("codec/pixels: a wrong number of bytes, and no size, are one clear error") {
  ps::image_scratch scratch;
  const auto refused = [&](std::size_t bytes, const ps::pixels<ps::rgb8>& codec) {
    return caught([&] { static_cast<void>(codec.decode(byte_vector(bytes), scratch)); });
  };
  CHECK(refused(36, {.width = 4, .height = 3}).line.empty());
  for (const std::size_t bytes : {0u, 35u, 37u, 33u, 39u, 72u}) {
    const auto error = refused(bytes, {.width = 4, .height = 3});
    CHECK(error.code == ps::errc::shape);
    CHECK_THAT(error.line, contains("4 x 3 pixels of rgb8"));
  }
  CHECK(refused(36, {.width = 0xffff'ffff, .height = 0xffff'ffff}).code == ps::errc::shape);
  CHECK(refused(3, {.width = 0xffff'ffff, .height = 0xffff'ffff}).code == ps::errc::shape);
  CHECK_THAT(refused(36, {}).line, contains("pixels<rgb8>{.width = ..., .height = ...}"));
  CHECK(refused(0, {.width = 3}).code == ps::errc::argument);
}

TEST_CASE("codec/pixels: interleaved pixels are not copied, and nothing is allocated") {
  const byte_vector bytes(32 * 32 * 3);
  ps::image_scratch scratch;
  const auto all = [&] {
    const auto image = ps::pixels<ps::rgb8>{.width = 32, .height = 32}.decode(bytes, scratch);
    const auto part = image.read({3, 4, 5, 6});
    CHECK(static_cast<const void*>(part.data()) == bytes.data() + (4 * 32 + 3) * 3);
    CHECK(static_cast<const void*>(image.finish().data()) == bytes.data());
  };
  all();
  CHECK(scratch.pixels.capacity() == 0);
  const ps::pixels<ps::rgb8> planar{.width = 32, .height = 32, .planar = true};
  static_cast<void>(planar.decode(bytes, scratch).finish());
  CHECK(penstock_test::allocations_of([&] { static_cast<void>(planar.decode(bytes, scratch).finish()); }) ==
        0);
}
