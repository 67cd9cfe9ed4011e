// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/avif.hpp>

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

static_assert(ps::codec<ps::avif> && ps::extension_codec<ps::avif>);
static_assert(ps::lazy_image<ps::decoded<ps::avif, ps::bytes_view>>);

TEST_CASE("codec/avif: files are as Pillow decodes them, turned, in every part and format") {
  std::uint64_t seed = 0;
  for (const std::string& stem : image_files::stems(".avif")) {
    CAPTURE(stem);
    const byte_vector file = image_files::file(stem + ".avif");
    const ps::avif_as<ps::rgba8> codec{.first_frame = true};
    const auto whole = image_files::decoded(codec, file);
    // Versions of libavif round differently when they convert colours.
    CHECK(image_files::distance(whole, image_files::expected(stem)) <= 2);
    image_files::check_all<ps::avif_as>(file, codec, whole, ++seed);
    CHECK(ps::avif::recognises(file));
  }
  ps::avif_scratch scratch;
  const byte_vector turned = image_files::file("avif_turn6.avif");
  CHECK(ps::avif{}.decode(turned, scratch).size() == ps::image_size{24, 34});
  CHECK(ps::avif{.orient = false}.decode(turned, scratch).size() == ps::image_size{34, 24});
}

TEST_CASE("codec/avif: an animation is an error that says what to write") {
  const byte_vector file = image_files::file("avif_animated.avif");
  CHECK_THAT(caught([&] { static_cast<void>(image_files::decoded(ps::avif{}, file)); }).line,
             contains("write {.first_frame = true} for its first frame"));
}

TEST_CASE("codec/avif: what is no avif, cut or damaged is one clear error") {
  const auto line = [](const byte_vector& file) {
    return caught([&] { static_cast<void>(image_files::decoded(ps::avif{}, file)); }).line;
  };
  CHECK_THAT(line({}), contains("is empty"));
  CHECK_THAT(line(to_vector(std::string_view("\0\0\0\x1c"
                                             "ftypheic and more",
                                             21))),
             contains("this is no avif image"));
  const byte_vector good = image_files::file("avif_420.avif");
  CHECK_THAT(line({good.begin(), good.end() - 40}), contains("the avif image is truncated"));
  image_files::check_damage(good, ps::avif_as<ps::rgba8>{}, 7);
  image_files::check_damage(image_files::file("avif_alpha.avif"), ps::avif_as<ps::rgb8>{}, 11);
}
