// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/codec/jpeg_encoder.hpp>

#include <penstock/codec/jpeg.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/count_allocations.hpp"

#include <cstdlib>
#include <string>
#include <vector>

// In a namespace, because a build may compile all tests of a room as one file.
namespace jpeg_encoder_test {

namespace ps = penstock;
using codec_test::caught;

namespace {

/// A soft picture, which survives being encoded.
template <std::size_t Channels>
std::vector<std::uint8_t> soft(const ps::image_size& size) {
  std::vector<std::uint8_t> values;
  for (std::uint32_t y = 0; y < size.height; ++y)
    for (std::uint32_t x = 0; x < size.width; ++x)
      for (std::size_t c = 0; c < Channels; ++c)
        values.push_back(static_cast<std::uint8_t>(40 + (x * 2 + y + c * 30) % 160));
  return values;
}

template <class Format>
std::vector<std::uint8_t> decoded(ps::bytes_view file, ps::image_size& size) {
  ps::jpeg_scratch scratch;
  const auto image = ps::jpeg_as<Format>{}.decode(file, scratch);
  size = image.size();
  const auto values = image.finish().values();
  return {values.begin(), values.end()};
}

}  // namespace

TEST_CASE("codec/jpeg_encoder: what it writes is read again") {
  ps::jpeg_encoder encoder;
  for (const ps::image_size size : {ps::image_size{1, 1}, {1, 9}, {33, 1}, {16, 16}, {67, 45}}) {
    for (const bool progressive : {false, true}) {
      ps::image_size back;
      const auto gray = soft<1>(size);
      const auto gray_file = encoder.encode(ps::pixel_view<std::uint8_t, 1>(gray.data(), size),
                                            {.quality = 100, .progressive = progressive});
      const auto gray_back = decoded<ps::gray8>(gray_file, back);
      CHECK(back == size);
      int worst = 0;
      for (std::size_t i = 0; i < gray.size(); ++i) worst = std::max(worst, std::abs(gray[i] - gray_back[i]));
      CHECK(worst <= 4);
      for (const auto chroma :
           {ps::jpeg_chroma::full_444, ps::jpeg_chroma::half_422, ps::jpeg_chroma::quarter_420}) {
        const auto rgb = soft<3>(size);
        const auto file = encoder.encode(ps::pixel_view<std::uint8_t, 3>(rgb.data(), size),
                                         {.quality = 100, .chroma = chroma, .progressive = progressive});
        const auto rgb_back = decoded<ps::rgb8>(file, back);
        CHECK(back == size);
        REQUIRE(rgb_back.size() == rgb.size());
        if (chroma != ps::jpeg_chroma::full_444) continue;
        worst = 0;
        for (std::size_t i = 0; i < rgb.size(); ++i) worst = std::max(worst, std::abs(rgb[i] - rgb_back[i]));
        CHECK(worst <= 6);
      }
    }
  }
}

TEST_CASE("codec/jpeg_encoder: quality and chroma change the size") {
  const ps::image_size size{96, 80};
  const auto rgb = soft<3>(size);
  const ps::pixel_view<std::uint8_t, 3> pixels(rgb.data(), size);
  ps::jpeg_encoder encoder;
  const auto bytes = [&](const ps::jpeg_encoding& how) { return encoder.encode(pixels, how).size(); };
  CHECK(bytes({.quality = 30}) < bytes({}));
  CHECK(bytes({}) < bytes({.quality = 100}));
  CHECK(bytes({.chroma = ps::jpeg_chroma::half_422}) < bytes({.chroma = ps::jpeg_chroma::full_444}));
  CHECK(bytes({}) == bytes({.quality = 90}));
  // a progressive file does not make the next one progressive
  const auto before = codec_test::to_vector(encoder.encode(pixels));
  (void)encoder.encode(pixels, {.progressive = true});
  CHECK(codec_test::to_vector(encoder.encode(pixels)) == before);
}

TEST_CASE("codec/jpeg_encoder: rows with gaps, and appending") {
  const ps::image_size size{20, 10};
  const auto rgb = soft<3>(size);
  const ps::pixel_view<std::uint8_t, 3> pixels(rgb.data(), size);
  ps::jpeg_encoder encoder;
  const ps::image_part part{3, 2, 11, 7};
  std::vector<std::uint8_t> dense;
  for (std::size_t y = 0; y < part.height; ++y) {
    const std::uint8_t* const row = pixels.part(part).row(y);
    dense.insert(dense.end(), row, row + part.width * 3);
  }
  const auto expected =
      codec_test::to_vector(encoder.encode(ps::pixel_view<std::uint8_t, 3>(dense.data(), part.size())));
  CHECK(codec_test::to_vector(encoder.encode(pixels.part(part))) == expected);
  ps::buffer out;
  out.append(ps::bytes_of("begin"));
  encoder.append(pixels.part(part), out);
  REQUIRE(out.size() == expected.size() + 5);
  CHECK(ps::text_of(out.view().first(5)) == "begin");
  CHECK(codec_test::to_vector(out.view().subspan(5)) == expected);
}

TEST_CASE("codec/jpeg_encoder: bad arguments") {
  std::uint8_t pixel[3] = {};
  ps::jpeg_encoder encoder;
  for (const int quality : {0, 101, -5}) {
    const auto e = caught([&] {
      (void)encoder.encode(ps::pixel_view<std::uint8_t, 3>(pixel, {1, 1}), {.quality = quality});
    });
    CHECK(e.code == ps::errc::argument);
    CHECK(e.line.find("give a number from 1 to 100") != std::string::npos);
  }
  for (const ps::image_size size : {ps::image_size{0, 1}, {1, 0}, {65501, 1}, {1, 65501}}) {
    const auto e = caught([&] { (void)encoder.encode(ps::pixel_view<std::uint8_t, 1>(pixel, size)); });
    CHECK(e.code == ps::errc::argument);
    CHECK(e.line.find("give it 1 to 65500 pixels") != std::string::npos);
  }
  CHECK_FALSE(encoder.encode(ps::pixel_view<std::uint8_t, 3>(pixel, {1, 1})).empty());
}

TEST_CASE("codec/jpeg_encoder: nothing is allocated for the second image") {
  const ps::image_size size{150, 100};
  const auto rgb = soft<3>(size);
  const ps::pixel_view<std::uint8_t, 3> pixels(rgb.data(), size);
  for (const bool progressive : {false, true}) {
    ps::jpeg_encoder encoder;
    for (int i = 0; i < 2; ++i) (void)encoder.encode(pixels, {.progressive = progressive});
    CHECK(penstock_test::allocations_of(
              [&] { (void)encoder.encode(pixels, {.progressive = progressive}); }) == 0);
  }
}

TEST_CASE("codec/jpeg_encoder: every allocation fails in turn") {
  const ps::image_size size{150, 100};
  const auto rgb = soft<3>(size);
  const ps::pixel_view<std::uint8_t, 3> pixels(rgb.data(), size);
  ps::jpeg_encoder encoder;
  const auto expected = codec_test::to_vector(encoder.encode(pixels, {.progressive = true}));
  const auto failed = penstock_test::fail_each_allocation(
      [&] {
        encoder = ps::jpeg_encoder();
        (void)encoder.encode(pixels, {.progressive = true});
      },
      [&](bool) { CHECK(codec_test::to_vector(encoder.encode(pixels, {.progressive = true})) == expected); });
  CHECK(failed >= 3);
}

}  // namespace jpeg_encoder_test
