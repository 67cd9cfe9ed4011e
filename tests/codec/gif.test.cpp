// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/gif.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/image_codec_test.hpp"
#include "support/image_files.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ps = penstock;
using codec_test::byte_vector;
using codec_test::caught;
using codec_test::to_vector;
using penstock_test::contains;

static_assert(ps::codec<ps::gif> && ps::extension_codec<ps::gif>);
static_assert(ps::lazy_image<ps::decoded<ps::gif, ps::bytes_view>>);

TEST_CASE("codec/gif: files are as Pillow decodes them, in every part and format") {
  std::uint64_t seed = 0;
  for (const std::string& stem : image_files::stems(".gif")) {
    CAPTURE(stem);
    const byte_vector file = image_files::file(stem + ".gif");
    const ps::gif_as<ps::rgba8> codec{.first_frame = true};
    const auto whole = image_files::expected(stem);
    REQUIRE(image_files::decoded(codec, file) == whole);
    image_files::check_all<ps::gif_as>(file, codec, whole, ++seed);
    CHECK(ps::gif::recognises(file));
  }
}

TEST_CASE("codec/gif: an animation is an error that says what to write") {
  const byte_vector file = image_files::file("gif_animated.gif");
  CHECK_THAT(caught([&] { static_cast<void>(image_files::decoded(ps::gif{}, file)); }).line,
             contains("write {.first_frame = true} for its first frame"));
  CHECK(image_files::decoded(ps::gif{}, image_files::file("gif_plain.gif")).channels == 3);
}

TEST_CASE("codec/gif: what is no gif, cut or damaged is one clear error") {
  const auto line = [](const byte_vector& file) {
    return caught([&] { static_cast<void>(image_files::decoded(ps::gif{}, file)); }).line;
  };
  CHECK_THAT(line({}), contains("is empty"));
  CHECK_THAT(line(to_vector(std::string_view("\x89PNG and more"))), contains("this is no gif image"));
  CHECK_THAT(line(to_vector(std::string_view("GIF89a\1\0\1\0\0\0\0;", 14))),
             contains("the gif image has no pixels"));
  const byte_vector good = image_files::file("gif_long.gif");
  const byte_vector half(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(good.size() / 2));
  CHECK_THAT(line(half), contains("the gif image is truncated: it ends before its last pixel"));
  CHECK_THAT(line(half), contains("decode<gif>"));
  for (const char* name : {"gif_plain.gif", "gif_interlaced.gif", "gif_transparent.gif", "gif_offset.gif"})
    image_files::check_damage(image_files::file(name), ps::gif_as<ps::rgba8>{}, 3);
}

TEST_CASE("codec/gif: with recover, the rows that are there") {
  for (const std::string stem : {"gif_plain", "gif_interlaced"}) {
    CAPTURE(stem);
    const byte_vector good = image_files::file(stem + ".gif");
    const byte_vector cut(good.begin(), good.end() - 120);
    ps::gif_scratch scratch;
    const auto image = ps::gif_as<ps::rgba8>{.recover = true}.decode(cut, scratch);
    const auto found = image_codec_test::copied(image.read(ps::whole_of(image.size())));
    CHECK(scratch.warnings == 1);
    const auto whole = image_files::expected(stem);
    REQUIRE(found.size == whole.size);
    CHECK(found != whole);
    CHECK(found.part({0, 0, found.size.width, 1}) == whole.part({0, 0, whole.size.width, 1}));
  }
}
