// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/image_of.hpp>

#include <penstock/codec/chain.hpp>
#include <penstock/codec/identity.hpp>
#include <penstock/codec/png.hpp>
#include <penstock/codec/png_encoder.hpp>
#include <penstock/codec/webp.hpp>
#include <penstock/codec/webp_encoder.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/count_allocations.hpp"
#include "support/image_codec_test.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ps = penstock;
using codec_test::byte_vector;
using codec_test::caught;
using codec_test::to_vector;
using image_codec_test::copied;
using penstock_test::contains;

using both = ps::image_of<ps::png, ps::webp>;
static_assert(ps::image_codec<both> && ps::extension_codec<both> && ps::codec<ps::image_of<ps::png>>);
static_assert(ps::lazy_image<ps::decoded<both, ps::bytes_view>>);
static_assert(ps::lone_codec<both> && ps::lone_codec<ps::png> && ps::lone_codec<ps::webp>);
static_assert(ps::lone_codec<ps::chain<ps::identity, ps::png>> &&
              !ps::lone_codec<ps::chain<ps::identity, ps::identity>>);
static_assert(both::extensions.size() == 2 && both::extensions[0] == "png" && both::extensions[1] == "webp");

TEST_CASE("codec/image_of: the content decides which codec decodes") {
  const auto pixels = image_codec_test::some_picture<std::uint8_t>({31, 17}, 3, 8);
  ps::png_encoder png;
  ps::webp_encoder webp;
  const byte_vector files[] = {
      to_vector(png.encode(pixels.view<3>(), {.shown = ps::orientation::rotated_90})),
      to_vector(webp.encode(pixels.view<3>(), {.lossless = true}))};
  const auto turned = image_codec_test::shown(pixels, ps::orientation::rotated_90);
  both::scratch scratch;
  for (int round = 0; round < 3; ++round) {
    CHECK(both{}.decode(files[0], scratch).index() == 0);
    image_codec_test::check_parts(both{}.decode(files[0], scratch), turned, 1);
    CHECK(both{}.decode(files[1], scratch).index() == 1);
    image_codec_test::check_parts(both{}.decode(files[1], scratch), pixels, 2);
  }
  const both stored(ps::png{.orient = false}, ps::webp{});
  image_codec_test::check_parts(stored.decode(files[0], scratch), pixels, 3);
  ps::image_of<ps::webp>::scratch one;
  image_codec_test::check_parts(ps::image_of<ps::webp>{}.decode(files[1], one), pixels, 4);
  CHECK(both::recognises(files[0]));
  CHECK(both::recognises(files[1]));
  CHECK_FALSE(ps::image_of<ps::webp>::recognises(files[0]));
  CHECK(penstock_test::allocations_of([&] {
          static_cast<void>(both{}.decode(files[0], scratch).finish());
          static_cast<void>(both{}.decode(files[1], scratch).finish());
        }) == 0);
  // The error of the codec that took it.
  CHECK_THAT(
      caught([&] { static_cast<void>(both{}.decode(ps::bytes_view(files[0]).first(20), scratch)); }).line,
      contains("png image ends within its header") && contains("[stage decode<png>]"));
  for (const byte_vector& file : files) {
    const auto late = caught([&] {
      static_cast<void>(both{}.decode(ps::bytes_view(file).first(file.size() - 20), scratch).finish());
    });
    CHECK(late.code == ps::errc::format);
    CHECK_THAT(late.line, contains(&file == files ? "[stage decode<png>]" : "[stage decode<webp>]"));
  }
  CHECK_THAT(caught([&] { static_cast<void>(ps::image_of<ps::webp>{}.decode(files[0], one)); }).line,
             contains("this is a PNG image") && contains("are: webp"));
}

TEST_CASE("codec/image_of: other formats are called by their names") {
  const auto refused = [](std::string_view bytes) {
    both::scratch scratch;
    const auto error = caught([&] { static_cast<void>(both{}.decode(bytes, scratch)); });
    CHECK(error.code == ps::errc::format);
    return error.line;
  };
  struct known {
    std::string_view bytes, words;
  };
  using namespace std::string_view_literals;
  for (const known& k : {known{"\xff\xd8\xff\xe0\0\x10JFIF"sv, "a JPEG image"},
                         {"GIF89a...", "a GIF image"},
                         {"GIF89a..WEBP", "a GIF image"},
                         {"\x89PNG\r\n", "the beginning of a PNG image"},
                         {"\0\0\0\x0cJXL \r\n\x87\n"sv, "a JPEG XL image"},
                         {"\0\0\0\x0cjP  \r\n\x87\n"sv, "a JPEG 2000 image"},
                         {"\xff\x0a...", "a JPEG XL image"},
                         {"II*\0...."sv, "a TIFF image"},
                         {"MM\0*...."sv, "a TIFF image"},
                         {"\0\0\0\x1c"
                          "ftypavif"sv,
                          "an AVIF image"},
                         {"\0\0\0\x1c"
                          "ftypheic"sv,
                          "a HEIC image"},
                         {"\0\0\0\x1c"
                          "ftypmif1"sv,
                          "a HEIC or AVIF"},
                         {"\0\0\0\x1c"
                          "ftypisom"sv,
                          "a video"},
                         {"BM\x10\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0"sv, "a BMP image"},
                         {"%PDF-1.7", "a PDF"},
                         {"\n  <!DOCTYPE HTML><p>404", "an HTML page"},
                         {"<html><head>", "an HTML page"},
                         {"<Head>", "an HTML page"},
                         {"<?xml version", "an XML text"},
                         {"P6\n3 4\n", "a PNM image"},
                         {"\x1f\x8b\x08", "a gzip file"},
                         {"PK\3\4", "a zip archive"},
                         {"RIFF....WAVE", "a RIFF file"},
                         {"\x93NUMPY", "a NumPy array"},
                         {"", "is empty"}}) {
    CAPTURE(k.words);
    CHECK_THAT(refused(k.bytes), contains(std::string(k.words)));
    CHECK_THAT(refused(k.bytes), contains(k.bytes.empty() ? "empty" : "are: png, webp"));
  }
  for (const std::string_view changed :
       {"\x89PNG\n\x1a\n"sv, "\x89PNG\r\r\n\x1a\r\n"sv, "\x89PNG\r\n\x1a\r\n"sv, "\x09PNG\r\n\x1a\n"sv,
        "\xc2\x89PNG\r\n\x1a\n"sv, "\xef\xbf\xbdPNG\r\n\x1a\n"sv})
    CHECK_THAT(refused(changed), contains("changed as if it were a text"));
  ps::image_of<ps::png>::scratch one;
  CHECK_THAT(
      caught([&] { static_cast<void>(ps::image_of<ps::png>{}.decode("RIFF....WEBPVP8 "sv, one)); }).line,
      contains("this is a WebP image") && contains("are: png"));
  CHECK_THAT(refused("XXXX....WEBPVP8 "), contains("no image of a known format"));
  CHECK_THAT(refused("BMW"), contains("42 4d 57"));
  CHECK_THAT(refused("\x01\xab"), contains("the bytes 01 ab, and"));
  CHECK_THAT(refused("a text that goes on"), contains("61 20 74 65 78 74 20 74,"));
  CHECK_THAT(refused(" \r\n\t"), contains("20 0d 0a 09"));
}
