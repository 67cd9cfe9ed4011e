// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/tiff.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/image_codec_test.hpp"
#include "support/image_files.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ps = penstock;
using codec_test::byte_vector;
using codec_test::caught;
using codec_test::to_vector;
using penstock_test::contains;

static_assert(ps::codec<ps::tiff> && ps::extension_codec<ps::tiff>);
static_assert(ps::lazy_image<ps::decoded<ps::tiff_as<ps::rgba16>, ps::bytes_view>>);

TEST_CASE("codec/tiff: files are as Pillow decodes them, turned, in every part and format") {
  std::uint64_t seed = 0;
  for (const std::string& stem : image_files::stems(".tif")) {
    if (stem == "tiff_float") continue;
    CAPTURE(stem);
    const byte_vector file = image_files::file(stem + ".tif");
    const auto whole = image_files::decoded(ps::tiff_as<ps::rgba8>{}, file);
    REQUIRE(whole == image_files::expected(stem));
    if (stem != "tiff_rgb16")
      image_files::check_all<ps::tiff_as>(file, ps::tiff_as<ps::rgba8>{}, whole, ++seed);
    CHECK(ps::tiff::recognises(file));
  }
  ps::tiff_scratch scratch;
  const byte_vector turned = image_files::file("tiff_turn6.tif");
  CHECK(ps::tiff{}.decode(turned, scratch).size() == ps::image_size{21, 37});
  CHECK(ps::tiff{.orient = false}.decode(turned, scratch).size() == ps::image_size{37, 21});
}

TEST_CASE("codec/tiff: values of 16 bits are kept, and those of 8 bits become 16") {
  const auto gray = image_files::expected<std::uint16_t>("tiff_gray16");
  CHECK(image_files::decoded(ps::tiff_as<ps::gray16>{}, image_files::file("tiff_gray16.tif")) == gray);
  const auto eight = image_files::decoded(ps::tiff{}, image_files::file("tiff_alpha.tif"));
  const auto sixteen = image_files::decoded(ps::tiff_as<ps::rgb16>{}, image_files::file("tiff_alpha.tif"));
  REQUIRE(sixteen.values.size() == eight.values.size());
  for (std::size_t i = 0; i < eight.values.size(); ++i) REQUIRE(sixteen.values[i] == eight.values[i] * 257);
  ps::tiff_scratch scratch;
  image_codec_test::check_parts(
      ps::tiff_as<ps::gray16>{}.decode(image_files::file("tiff_gray16.tif"), scratch), gray, 1, 8);
}

TEST_CASE("codec/tiff: what is no tiff, cut or damaged is one clear error") {
  const auto line = [](const byte_vector& file) {
    return caught([&] { static_cast<void>(image_files::decoded(ps::tiff{}, file)); }).line;
  };
  CHECK_THAT(line({}), contains("is empty"));
  CHECK_THAT(line(to_vector(std::string_view("\x89PNG and more"))), contains("this is no tiff image"));
  CHECK_THAT(line(image_files::file("tiff_float.tif")),
             contains("32-bit samples that are floating-point numbers; this codec reads unsigned integers"));
  const byte_vector good = image_files::file("tiff_big_endian.tif");
  CHECK_THAT(line({good.begin(), good.end() - 40}), contains("the tiff image is damaged or truncated: "));
  CHECK_THAT(line({good.begin(), good.end() - 40}), contains("decode<tiff>"));
  for (const char* name : {"tiff_tiff_lzw.tif", "tiff_tiles.tif", "tiff_planes.tif", "tiff_palette.tif",
                           "tiff_bilevel.tif", "tiff_gray16.tif"})
    image_files::check_damage(image_files::file(name), ps::tiff_as<ps::rgba8>{}, 29);
}

TEST_CASE("codec/tiff: with recover, the strips that are there") {
  const byte_vector good = image_files::file("tiff_big_endian.tif");
  const byte_vector cut(good.begin(), good.end() - 40);
  ps::tiff_scratch scratch;
  const auto image = ps::tiff_as<ps::rgba8>{.recover = true}.decode(cut, scratch);
  const auto found = image_codec_test::copied(image.read(ps::whole_of(image.size())));
  CHECK(scratch.warnings == 1);
  const auto whole = image_files::expected("tiff_big_endian");
  const ps::image_part front{0, 0, whole.size.width, whole.size.height / 2};
  CHECK(found.part(front) == whole.part(front));
  CHECK(found != whole);
}
