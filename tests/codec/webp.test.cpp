// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/webp.hpp>
#include <penstock/codec/webp_encoder.hpp>
#include <penstock/core/random.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/count_allocations.hpp"
#include "support/image_codec_test.hpp"
#include "support/image_files.hpp"
#include "support/test_data.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <vector>

namespace ps = penstock;
using codec_test::byte_vector;
using codec_test::caught;
using codec_test::to_vector;
using image_codec_test::copied;
using penstock_test::contains;
using webp_picture = image_codec_test::picture<std::uint8_t>;

static_assert(ps::codec<ps::webp> && ps::extension_codec<ps::webp>);
static_assert(ps::lazy_image<ps::decoded<ps::webp, ps::bytes_view>>);

namespace webp_test {

/// What libwebp itself makes of a file, by its plain calls; empty if it refuses it.
webp_picture plain(const byte_vector& file, std::size_t channels) {
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(file.data());
  int width = 0, height = 0;
  std::uint8_t* const pixels = channels == 4 ? WebPDecodeRGBA(bytes, file.size(), &width, &height)
                                             : WebPDecodeRGB(bytes, file.size(), &width, &height);
  if (pixels == nullptr) return {};
  webp_picture out{{static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height)}, channels, {}};
  out.values.assign(pixels,
                    pixels + static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * channels);
  WebPFree(pixels);
  return out;
}
/// Pillow's luma, as it writes it.
webp_picture in_gray(const webp_picture& rgb) {
  webp_picture out{rgb.size, 1, {}};
  for (std::size_t i = 0; i < rgb.values.size(); i += 3)
    out.values.push_back(static_cast<std::uint8_t>(
        (rgb.values[i] * 19595u + rgb.values[i + 1] * 38470u + rgb.values[i + 2] * 7471u + 0x8000u) >> 16));
  return out;
}
template <class Format>
webp_picture decoded(const byte_vector& file, const ps::webp_as<Format>& codec = {}) {
  ps::webp_scratch scratch;
  const auto image = codec.decode(file, scratch);
  return copied(image.read(ps::whole_of(image.size())));
}
codec_test::thrown failure(const byte_vector& file, const ps::webp& codec = {}) {
  return caught([&] { decoded(file, codec); });
}
template <std::size_t Channels>
byte_vector encoded(const webp_picture& pixels, const ps::webp_options& options = {}) {
  ps::webp_encoder encoder;
  return to_vector(encoder.encode(pixels.view<Channels>(), options));
}
std::string little(std::size_t value, int bytes = 4) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}
std::string chunk(std::string_view type, std::string_view data) {
  std::string out = std::string(type) + little(data.size()) + std::string(data);
  if (data.size() % 2 != 0) out += '\0';
  return out;
}
/// An image with metadata: VP8X, chunks before, the image's own chunks, chunks after.
byte_vector extended(const byte_vector& simple, ps::image_size size, unsigned flags,
                     const std::string& before, const std::string& after) {
  const std::string_view all = ps::text_of(simple);
  const std::string image(all.substr(12));
  const std::string header = little(flags) + little(size.width - 1, 3) + little(size.height - 1, 3);
  const std::string body = "WEBP" + chunk("VP8X", header) + before + image + after;
  return to_vector(std::string_view("RIFF" + little(body.size()) + body));
}
std::string exif_of(ps::orientation o, bool prefixed) {
  std::string tiff("MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\0\0\0\0\0\0\0", 26);
  tiff[19] = static_cast<char>(o);
  return chunk("EXIF", prefixed ? std::string("Exif\0\0", 6) + tiff : tiff);
}

}  // namespace webp_test

TEST_CASE("codec/webp: a part equals that part of the whole, in every format") {
  using namespace webp_test;
  std::uint64_t seed = 1;
  for (const ps::image_size size :
       {ps::image_size{1, 1}, {1, 9}, {2, 2}, {9, 1}, {17, 16}, {64, 40}, {33, 61}, {131, 97}, {300, 3}})
    for (const bool lossless : {false, true})
      for (const float quality : {0.0f, 60.0f, 100.0f}) {
        CAPTURE(size.width, size.height, lossless, quality);
        const ps::webp_options options{.quality = quality, .lossless = lossless};
        const webp_picture pixels = image_codec_test::some_picture<std::uint8_t>(size, 4, ++seed);
        const byte_vector file = encoded<4>(pixels, options);
        ps::webp_scratch scratch;
        const webp_picture rgb = plain(file, 3), rgba = plain(file, 4);
        if (lossless) REQUIRE(rgba == pixels);
        image_codec_test::check_parts(ps::webp_as<ps::rgba8>{}.decode(file, scratch), rgba, seed, 12);
        image_codec_test::check_parts(ps::webp{}.decode(file, scratch), rgb, seed, 12);
        image_codec_test::check_parts(ps::webp_as<ps::gray8>{}.decode(file, scratch), in_gray(rgb), seed, 12);
      }
}

TEST_CASE("codec/webp: orientations are applied, with and without the prefix of EXIF") {
  using namespace webp_test;
  const webp_picture pixels = image_codec_test::some_picture<std::uint8_t>({37, 26}, 3, 4);
  for (const bool lossless : {false, true}) {
    const byte_vector simple = encoded<3>(pixels, {.lossless = lossless});
    const webp_picture stored = plain(simple, 3);
    for (int turn = 1; turn <= 8; ++turn)
      for (const bool prefixed : {false, true})
        for (const bool before : {false, true}) {
          const auto o = static_cast<ps::orientation>(turn);
          const std::string exif = exif_of(o, prefixed), odd = chunk("ICCP", "garbage");
          const byte_vector file = extended(simple, stored.size, 0x28, odd + (before ? exif : ""),
                                            before ? "" : exif + chunk("XMP ", "x"));
          REQUIRE(plain(file, 3) == stored);
          ps::webp_scratch scratch;
          image_codec_test::check_parts(ps::webp{}.decode(file, scratch), image_codec_test::shown(stored, o),
                                        3, 3);
          image_codec_test::check_parts(ps::webp_as<ps::gray8>{.orient = false}.decode(file, scratch),
                                        in_gray(stored), 3, 2);
        }
  }
  // A chunk that ends behind the file has no orientation.
  const byte_vector whole =
      extended(encoded<3>(pixels), {37, 26}, 8, "", exif_of(ps::orientation::flipped, false));
  CHECK(ps::detail::webp_orientation(whole) == ps::orientation::flipped);
  for (std::size_t size = 0; size < whole.size(); ++size)
    CHECK(ps::detail::webp_orientation(ps::bytes_view(whole).first(size)) == ps::orientation::upright);
}

TEST_CASE("codec/webp: the orientation in XMP counts where EXIF has none") {
  using namespace webp_test;
  const auto xmp = [](std::string_view value) {
    return chunk("XMP ", "<x><r tiff:Orientation=\"" + std::string(value) + "\"/></x>");
  };
  const byte_vector simple = encoded<3>(image_codec_test::some_picture<std::uint8_t>({7, 5}, 3, 4));
  const auto turn = [&](const std::string& after) {
    return ps::detail::webp_orientation(extended(simple, {7, 5}, 12, "", after));
  };
  CHECK(turn(xmp("6")) == ps::orientation::rotated_90);
  CHECK(turn(xmp("6") + exif_of(ps::orientation::flipped, false)) == ps::orientation::flipped);
  CHECK(turn(exif_of(ps::orientation::upright, false) + xmp("6")) == ps::orientation::upright);
  CHECK(turn(chunk("EXIF", "damaged") + xmp("3")) == ps::orientation::rotated_180);
  CHECK(turn(xmp("9")) == ps::orientation::upright);
}

TEST_CASE("codec/webp: an animation becomes its first frame if that is asked for") {
  using namespace webp_test;
  const auto frame = [](const byte_vector& simple, std::uint32_t x, std::uint32_t y, ps::image_size size) {
    return chunk("ANMF", little(x / 2, 3) + little(y / 2, 3) + little(size.width - 1, 3) +
                             little(size.height - 1, 3) + little(100, 3) + '\0' +
                             std::string(ps::text_of(simple).substr(12)));
  };
  const auto animated = [](ps::image_size canvas, const std::string& frames) {
    const std::string body =
        "WEBP" + chunk("VP8X", little(2) + little(canvas.width - 1, 3) + little(canvas.height - 1, 3)) +
        chunk("ANIM", little(0) + little(0, 2)) + frames;
    return to_vector(std::string_view("RIFF" + little(body.size()) + body));
  };
  const webp_picture first = image_codec_test::some_picture<std::uint8_t>({20, 14}, 4, 1),
                     second = image_codec_test::some_picture<std::uint8_t>({32, 24}, 4, 2);
  const auto lossless = [](const webp_picture& p) { return encoded<4>(p, {.lossless = true}); };
  const ps::webp_as<ps::rgba8> codec{.first_frame = true};

  const byte_vector whole =
      animated({32, 24}, frame(lossless(second), 0, 0, {32, 24}) + frame(lossless(first), 4, 6, {20, 14}));
  CHECK(decoded(whole, codec) == second);
  CHECK_THAT(failure(whole).line, contains("write {.first_frame = true} for its first frame"));

  webp_picture canvas{{32, 24}, 4, std::vector<std::uint8_t>(32 * 24 * 4)};
  for (std::size_t y = 0; y < 14; ++y)
    std::copy_n(first.values.begin() + static_cast<std::ptrdiff_t>(y * 20 * 4), 20 * 4,
                canvas.values.begin() + static_cast<std::ptrdiff_t>(((y + 6) * 32 + 4) * 4));
  const std::string small = frame(lossless(first), 4, 6, {20, 14});
  const byte_vector part = animated({32, 24}, small + frame(lossless(second), 0, 0, {32, 24}));
  ps::webp_scratch scratch;
  image_codec_test::check_parts(codec.decode(part, scratch), canvas, 3, 20);
  for (std::size_t size = 0; size < part.size() - 900; size += 7) {
    const byte_vector cut(part.begin(), part.begin() + static_cast<std::ptrdiff_t>(size));
    if (size < 12 + 18 + 14 + small.size())
      CHECK(caught([&] { static_cast<void>(decoded(cut, codec)); }).code == ps::errc::format);
  }
  CHECK_THAT(caught([&] {
               static_cast<void>(decoded(animated({16, 16}, frame(lossless(first), 4, 6, {20, 14})), codec));
             }).line,
             contains("not within its canvas"));
  CHECK_THAT(caught([&] {
               static_cast<void>(decoded(animated({64, 64}, frame(lossless(first), 4, 6, {21, 14})), codec));
             }).line,
             contains("another size than it says"));
}

TEST_CASE("codec/webp: files with metadata are turned, and animated ones begin, as with Pillow") {
  for (const std::string& stem : image_files::stems(".webp")) {
    CAPTURE(stem);
    CHECK(image_files::decoded(ps::webp_as<ps::rgba8>{.first_frame = true},
                               image_files::file(stem + ".webp")) == image_files::expected(stem));
  }
}

TEST_CASE("codec/webp: what is no webp, animated or too large is one clear error") {
  using namespace webp_test;
  CHECK_THAT(failure({}).line, contains("is empty"));
  CHECK_THAT(failure(to_vector(std::string_view("GIF89a, and more"))).line, contains("no webp image"));
  CHECK_THAT(failure(to_vector(std::string_view("RIFF\x10\0\0\0WAVEfmt ", 16))).line,
             contains("no webp image"));
  CHECK(failure(to_vector(std::string_view("RIFF\x10\0\0\0WEBPVP8 ", 16))).code == ps::errc::format);
  const webp_picture pixels = image_codec_test::some_picture<std::uint8_t>({40, 30}, 3, 5);
  const byte_vector simple = encoded<3>(pixels);
  CHECK_THAT(failure(extended(simple, {40, 30}, 2, "", "")).line, contains("animated"));
  const auto limited = [&](const byte_vector& file, const ps::image_limits& limits) {
    ps::webp_scratch scratch;
    return caught([&] { static_cast<void>(ps::webp{.limits = limits}.decode(file, scratch)); });
  };
  CHECK(limited(simple, {.width = 39}).code == ps::errc::limit);
  CHECK(limited(simple, {.height = 29}).code == ps::errc::limit);
  CHECK(limited(simple, {.bytes = 3599}).code == ps::errc::limit);
  CHECK(limited(simple, {.width = 40, .height = 30, .bytes = 3600}).line.empty());
  const byte_vector canvas = extended(simple, {1 << 24, 255}, 2, "", "");
  CHECK(limited(canvas, {}).code == ps::errc::limit);
  CHECK(ps::webp::recognises(simple));
  CHECK_FALSE(ps::webp::recognises(ps::bytes_view(simple).first(11)));
}

TEST_CASE("codec/webp: truncated files are errors, or what is left of them; any bit may be wrong") {
  using namespace webp_test;
  const webp_picture pixels = image_codec_test::some_picture<std::uint8_t>({40, 50}, 4, 5);
  for (const bool lossless : {false, true})
    for (const bool alpha : {false, true}) {
      const byte_vector good = alpha
                                   ? encoded<4>(pixels, {.lossless = lossless})
                                   : encoded<3>(image_codec_test::some_picture<std::uint8_t>({40, 50}, 3, 5),
                                                {.lossless = lossless});
      const webp_picture whole = plain(good, 4);
      ps::webp_scratch scratch;
      for (std::size_t size = 0; size < good.size(); ++size) {
        const byte_vector cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size));
        const auto error = failure(cut);
        const bool padding = size + 1 == good.size() && error.line.empty();
        if (!padding) CHECK(error.code == ps::errc::format);
        if (size > 100 && !padding) CHECK_THAT(error.line, contains("[stage decode<webp>]"));
        const auto left = caught([&] {
          const auto image = ps::webp_as<ps::rgba8>{.recover = true}.decode(cut, scratch);
          const auto got = copied(image.read(ps::whole_of(image.size())));
          REQUIRE(got.size == whole.size);
          const auto part = copied(image.read({3, 5, 20, 30}));
          CHECK(part == got.part({3, 5, 20, 30}));
          const auto row = copied(image.read({0, 0, 40, 1})).values;  // an image without a row is no image
          CHECK(std::any_of(row.begin(), row.end(), [](std::uint8_t value) { return value != 0; }));
        });
        if (!left.line.empty()) CHECK(left.code == ps::errc::format);
        if (size > good.size() * 3 / 4) CHECK(left.line.empty());
      }
      CHECK(scratch.warnings > 100);
      const std::size_t step = ps::rng(1, 0, 0)() % 3 + 5;
      for (std::size_t bit = 0; bit < good.size() * 8; bit += step) {
        byte_vector bad = good;
        bad[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
        const auto error = caught([&] {
          const ps::webp codec{.limits = {.width = 64, .height = 64}, .recover = bit % 2 == 0};
          const auto image = codec.decode(bad, scratch);
          const auto got = copied(image.read(ps::whole_of(image.size())));
          REQUIRE(got.size == image.size());
          if (!codec.recover) return;
          const ps::image_part some{got.size.width / 2, got.size.height / 2, 1, (got.size.height + 1) / 2};
          REQUIRE(copied(image.read(some)) == got.part(some));
        });
        if (!error.line.empty()) REQUIRE(ps::depends_on_bytes(error.code));
      }
    }
}

TEST_CASE("codec/webp: damaged alpha is no lack of memory") {
  ps::rng random(3, 0, 0);
  std::vector<std::uint8_t> pixels(std::size_t{29} * 21 * 4);
  for (auto& value : pixels) value = static_cast<std::uint8_t>(random());
  ps::webp_encoder encoder;
  const byte_vector file =
      codec_test::to_vector(encoder.encode(ps::pixel_view<std::uint8_t, 4>(pixels.data(), {29, 21})));
  constexpr std::string_view name = "ALPH";
  const auto chunk = std::search(file.begin(), file.end(), name.begin(), name.end(),
                                 [](std::byte a, char b) { return std::to_integer<char>(a) == b; });
  REQUIRE(chunk != file.end());
  const auto begin = static_cast<std::size_t>(chunk - file.begin()) + 8;
  std::size_t refused = 0;
  for (std::size_t at = begin; at < begin + 100; ++at)
    for (const bool recover : {false, true}) {
      byte_vector damaged = file;
      for (std::size_t i = at; i < at + 40; ++i) damaged[i] ^= std::byte{0xa5};
      ps::webp_scratch scratch;
      try {
        const auto image = ps::webp_as<ps::rgba8>{.recover = recover}.decode(damaged, scratch);
        (void)image.read(ps::whole_of(image.size()));
      } catch (const ps::error& e) {
        CHECK(e.code() == ps::errc::format);
        ++refused;
      }
    }
  CHECK(refused > 0);
}

TEST_CASE("codec/webp: a truncated image keeps its upper rows") {
  using namespace webp_test;
  for (const bool lossless : {false, true}) {
    const webp_picture pixels = image_codec_test::some_picture<std::uint8_t>({160, 200}, 3, 5);
    byte_vector file = encoded<3>(pixels, {.lossless = lossless});
    const webp_picture whole = plain(file, 3);
    file.resize(file.size() / 2);
    const webp_picture got = decoded<ps::rgb8>(file, {.recover = true});
    std::uint32_t same = 0;
    while (same < 200 && got.part({0, same, 160, 1}) == whole.part({0, same, 160, 1})) ++same;
    CHECK(same > 40);
    CHECK(same < 160);
    CHECK(got.part({0, 199, 160, 1}).values == std::vector<std::uint8_t>(480));
  }
}

TEST_CASE(
    "codec/webp: penstock allocates nothing once the scratch has grown, and each failure is one exception") {
  using namespace webp_test;
  const webp_picture pixels = image_codec_test::some_picture<std::uint8_t>({60, 50}, 3, 5);
  const byte_vector file =
      extended(encoded<3>(pixels), {60, 50}, 8, "", exif_of(ps::orientation::rotated_90, true));
  const webp_picture expected = image_codec_test::shown(in_gray(plain(file, 3)), ps::orientation::rotated_90);
  ps::webp_scratch scratch;
  const auto all = [&] {
    static_cast<void>(ps::webp_as<ps::gray8>{}.decode(file, scratch).finish());
    static_cast<void>(ps::webp{}.decode(file, scratch).read({1, 2, 30, 40}));
  };
  const std::uint64_t failures = penstock_test::fail_each_allocation([&] {
    ps::webp_scratch fresh;
    static_cast<void>(ps::webp_as<ps::gray8>{}.decode(file, fresh).finish());
    all();
  });
  CHECK(failures >= 3);
  all();
  CHECK(penstock_test::allocations_of(all) == 0);
  const auto image = ps::webp_as<ps::gray8>{}.decode(file, scratch);
  CHECK(copied(image.read(ps::whole_of(image.size()))) == expected);
}

TEST_CASE("codec/webp: real files are as libwebp decodes them, or errors") {
  using namespace webp_test;
  const auto folder = penstock_test::test_data("webp");
  if (!folder) {
    WARN("PENSTOCK_TEST_DATA has no folder webp; real files are not decoded");
    return;
  }
  std::size_t good = 0, bad = 0, seen = 0;
  std::set<std::string> only_here, only_there;
  codec_test::each_file(*folder, [&](const std::string& name, const byte_vector& file) {
    if (!name.ends_with(".webp") && !ps::webp::recognises(file)) return;
    if (!image_codec_test::thorough() && seen++ % 4 != 0) return;  // two minutes with sanitizers
    CAPTURE(name);
    ps::webp_scratch scratch;
    const ps::webp codec{.limits = {.width = 4096, .height = 4096}, .orient = false};
    const auto error = caught([&] { static_cast<void>(codec.decode(file, scratch).finish()); });
    const webp_picture expected = error.code == ps::errc::limit ? webp_picture{} : plain(file, 3);
    if (!error.line.empty()) {
      ++bad;
      CHECK(ps::depends_on_bytes(error.code));
      if (!expected.values.empty()) only_there.insert(name + ": " + error.line);
      return;
    }
    ++good;
    if (expected.values.empty()) {
      only_here.insert(name);
      return;
    }
    const int rounds = image_codec_test::thorough() ? 6 : expected.values.size() < 200'000 ? 2 : 0;
    image_codec_test::check_parts(codec.decode(file, scratch), expected, good, rounds);
    if (rounds != 0)
      image_codec_test::check_parts(ps::webp_as<ps::rgba8>{.orient = false}.decode(file, scratch),
                                    plain(file, 4), good, rounds / 2);
  });
  CHECK(good > (image_codec_test::thorough() ? 80 : 15));
  CHECK(bad > (image_codec_test::thorough() ? 20 : 3));
  CHECK(only_here == std::set<std::string>{});
  CHECK(only_there == std::set<std::string>{});

  const auto original =
      codec_test::file_bytes(*folder / "dali_orientation/cat-lossy-2184682_640_original.webp");
  if (original.empty()) return;
  const webp_picture upright = decoded<ps::rgb8>(original);
  codec_test::each_file(*folder / "dali_orientation", [&](const std::string& name, const byte_vector& file) {
    if (!name.ends_with(".webp")) return;
    CAPTURE(name);
    // The files hold the same pixels, and differ in their orientation only.
    const auto stored = decoded<ps::rgb8>(file, {.orient = false});
    CHECK(stored == upright);
    CHECK(decoded<ps::rgb8>(file) == image_codec_test::shown(stored, ps::detail::webp_orientation(file)));
  });
}
