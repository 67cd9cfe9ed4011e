// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/png.hpp>
#include <penstock/codec/png_encoder.hpp>
#include <penstock/core/random.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/count_allocations.hpp"
#include "support/fixtures.hpp"
#include "support/image_codec_test.hpp"
#include "support/image_files.hpp"
#include "support/raw_png.hpp"
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
using image_codec_test::picture;
using penstock_test::contains;
using penstock_test::raw_png;

static_assert(ps::codec<ps::png> && ps::extension_codec<ps::png>);
static_assert(ps::lazy_image<ps::decoded<ps::png, ps::bytes_view>>);
static_assert(ps::lazy_image<ps::decoded<ps::png_as<ps::gray16>, ps::bytes_view>>);

namespace png_test {

template <class Format>
picture<typename Format::value_type> decoded(const byte_vector& file, const ps::png_as<Format>& codec = {}) {
  ps::png_scratch scratch;
  const auto image = codec.decode(file, scratch);
  return copied(image.read(ps::whole_of(image.size())));
}
template <class Format>
codec_test::thrown failure(const byte_vector& file, const ps::png_as<Format>& codec = {}) {
  return caught([&] { decoded<Format>(file, codec); });
}

/// What libspng itself makes of a file, by its plain calls; empty if it refuses it.
template <class T>
picture<T> plain(const byte_vector& file, int format, std::size_t channels) {
  spng_ctx* const context = spng_ctx_new(0);
  picture<T> out;
  out.channels = channels;
  spng_set_image_limits(context, 8192, 8192);
  spng_set_png_buffer(context, file.data(), file.size());
  spng_ihdr header{};
  std::size_t bytes = 0;
  if (spng_get_ihdr(context, &header) == 0 && spng_decoded_image_size(context, format, &bytes) == 0) {
    out.values.resize(bytes / sizeof(T));
    out.size = {header.width, header.height};
    if (spng_decode_image(context, out.values.data(), bytes, format, SPNG_DECODE_TRNS) != 0) out = {};
  }
  spng_ctx_free(context);
  return out;
}
template <class T>
picture<T> without_alpha(const picture<T>& rgba) {
  picture<T> out{rgba.size, 3, {}};
  for (std::size_t i = 0; i < rgba.values.size(); ++i)
    if (i % 4 != 3) out.values.push_back(rgba.values[i]);
  return out;
}
/// Pillow's luma, as it writes it.
template <class T>
picture<T> in_gray(const picture<T>& colours) {
  picture<T> out{colours.size, 1, {}};
  for (std::size_t i = 0; i + 2 < colours.values.size(); i += colours.channels)
    out.values.push_back(static_cast<T>((colours.values[i] * 19595u + colours.values[i + 1] * 38470u +
                                         colours.values[i + 2] * 7471u + 0x8000u) >>
                                        16));
  return out;
}
template <class To, class From>
picture<To> in_depth(const picture<From>& from) {
  picture<To> out{from.size, from.channels, {}};
  for (const From value : from.values)
    out.values.push_back(static_cast<To>(sizeof(To) == sizeof(From) ? value
                                         : sizeof(To) == 1          ? value >> 8
                                                                    : value * 257));
  return out;
}

/// Every format must be what follows from the pixels as RGBA of 16 bits.
void check_formats(const byte_vector& file, const picture<std::uint16_t>& rgba) {
  const auto rgba8 = in_depth<std::uint8_t>(rgba);
  REQUIRE(decoded<ps::rgba16>(file) == rgba);
  REQUIRE(decoded<ps::rgb16>(file) == without_alpha(rgba));
  REQUIRE(decoded<ps::gray16>(file) == in_gray(rgba));
  REQUIRE(decoded<ps::rgba8>(file) == rgba8);
  REQUIRE(decoded<ps::rgb8>(file) == without_alpha(rgba8));
  REQUIRE(decoded<ps::gray8>(file) == in_gray(rgba8));
}

template <class Format>
byte_vector encoded(const picture<typename Format::value_type>& pixels, const ps::png_options& options = {}) {
  ps::png_encoder encoder;
  return to_vector(encoder.encode(pixels.template view<Format::channels>(), options));
}

template <class Format>
void check_format(std::uint64_t seed) {
  using value = typename Format::value_type;
  for (const ps::image_size size :
       {ps::image_size{1, 1}, {1, 9}, {9, 1}, {7, 5}, {64, 40}, {33, 61}, {300, 3}}) {
    CAPTURE(Format::format_name, size.width, size.height);
    const auto stored = image_codec_test::some_picture<value>(size, Format::channels, seed);
    for (int turn = 1; turn <= 8; ++turn) {
      const auto o = static_cast<ps::orientation>(turn);
      const byte_vector file = encoded<Format>(stored, {.level = turn, .shown = o});
      ps::png_scratch scratch;
      image_codec_test::check_parts(ps::png_as<Format>{}.decode(file, scratch),
                                    image_codec_test::shown(stored, o), seed + static_cast<unsigned>(turn),
                                    4);
      image_codec_test::check_parts(ps::png_as<Format>{.orient = false}.decode(file, scratch), stored, seed,
                                    2);
    }
  }
}

byte_vector small_file(std::size_t idat_bytes = 100) {
  raw_png raw{16, 12, 8, 2};
  raw.idat_bytes = idat_bytes;
  const auto pixels = image_codec_test::some_picture<std::uint8_t>({16, 12}, 3, 5);
  return to_vector(raw.of_samples({pixels.values.begin(), pixels.values.end()}));
}

}  // namespace png_test

TEST_CASE("codec/png: decodes what the encoder writes, in every format, part and orientation") {
  png_test::check_format<ps::gray8>(1);
  png_test::check_format<ps::rgb8>(2);
  png_test::check_format<ps::rgba8>(3);
  png_test::check_format<ps::gray16>(4);
  png_test::check_format<ps::rgb16>(5);
  png_test::check_format<ps::rgba16>(6);
}

TEST_CASE("codec/png: every colour type and depth becomes every format") {
  ps::rng random(9, 0, 0);
  struct kind {
    unsigned colour, depth;
  };
  for (const kind k :
       {kind{0, 1}, kind{0, 2}, kind{0, 4}, kind{0, 8}, kind{0, 16}, kind{2, 8}, kind{2, 16}, kind{3, 1},
        kind{3, 2}, kind{3, 4}, kind{3, 8}, kind{4, 8}, kind{4, 16}, kind{6, 8}, kind{6, 16}})
    for (const bool interlaced : {false, true})
      for (const bool transparent : {false, true})
        for (const ps::image_size size : {ps::image_size{1, 1}, {2, 3}, {5, 5}, {13, 11}, {3, 17}}) {
          CAPTURE(k.colour, k.depth, interlaced, transparent, size.width, size.height);
          raw_png raw{size.width, size.height, k.depth, k.colour, interlaced};
          const unsigned channels = k.colour == 2 ? 3 : k.colour == 4 ? 2 : k.colour == 6 ? 4 : 1;
          const unsigned largest = (1u << k.depth) - 1;
          std::vector<unsigned> samples;
          for (std::size_t i = 0; i < std::size_t{size.width} * size.height * channels; ++i)
            samples.push_back(static_cast<unsigned>(random.below(largest + 1)));
          std::string palette, alphas;
          for (unsigned i = 0; i <= largest && k.colour == 3; ++i) {
            for (int c = 0; c < 3; ++c) palette += static_cast<char>(random.below(256));
            if (i < largest) alphas += static_cast<char>(random.below(256));
          }
          if (k.colour == 3) raw.before = raw_png::chunk("PLTE", palette);
          if (transparent && k.colour == 3) raw.before += raw_png::chunk("tRNS", alphas);
          if (transparent && (k.colour == 0 || k.colour == 2)) {
            std::string which;
            for (unsigned c = 0; c < channels; ++c) {
              which += static_cast<char>(samples[c] >> 8);
              which += static_cast<char>(samples[c]);
            }
            raw.before += raw_png::chunk("tRNS", which);
          }
          picture<std::uint16_t> rgba{size, 4, {}};
          for (std::size_t i = 0; i < samples.size(); i += channels) {
            unsigned p[4] = {samples[i], samples[i], samples[i], largest};
            if (k.colour == 4) p[3] = samples[i + 1];
            if (k.colour == 2 || k.colour == 6)
              for (unsigned c = 0; c < channels; ++c) p[c] = samples[i + c];
            const bool keyed = transparent && (k.colour == 0 || k.colour == 2) &&
                               std::equal(samples.begin(), samples.begin() + channels,
                                          samples.begin() + static_cast<std::ptrdiff_t>(i));
            if (keyed) p[3] = 0;
            unsigned top = largest;
            if (k.colour == 3) {
              for (unsigned c = 0; c < 3; ++c) p[c] = static_cast<unsigned char>(palette[samples[i] * 3 + c]);
              p[3] = transparent && samples[i] < alphas.size()
                         ? static_cast<unsigned char>(alphas[samples[i]])
                         : 255u;
              top = 255;
            }
            for (const unsigned value : p)
              rgba.values.push_back(static_cast<std::uint16_t>(value * 65535 / top));
          }
          const byte_vector file = to_vector(raw.of_samples(samples));
          png_test::check_formats(file, rgba);
          ps::png_scratch scratch;
          image_codec_test::check_parts(ps::png_as<ps::rgba16>{}.decode(file, scratch), rgba, 1, 3);
          image_codec_test::check_parts(ps::png_as<ps::gray8>{}.decode(file, scratch),
                                        png_test::in_gray(png_test::in_depth<std::uint8_t>(rgba)), 2, 3);
        }
}

TEST_CASE("codec/png: what is no png, or another's header, is one clear error") {
  using png_test::failure;
  const byte_vector good = png_test::small_file();
  CHECK_THAT(failure<ps::rgb8>({}).line, contains("is empty"));
  CHECK_THAT(failure<ps::rgb8>(to_vector(std::string_view("GIF89a, and more"))).line,
             contains("no png image"));
  CHECK_THAT(failure<ps::rgb8>({good.begin(), good.begin() + 20}).line, contains("within its header"));
  CHECK_THAT(failure<ps::rgb8>(to_vector(std::string_view("\x89PNG\n\x1a\n...", 10))).line,
             contains("changed as if it were a text") && contains("[offset 0]"));
  CHECK_THAT(failure<ps::rgb8>({good.begin(), good.begin() + 7}).line, contains("no png image"));
  const auto with = [&](std::size_t at, unsigned value) {
    byte_vector bytes = good;
    bytes[at] = static_cast<std::byte>(value);
    return failure<ps::rgb8>(bytes);
  };
  CHECK_THAT(with(12, 'J').line, contains("does not begin with a header"));
  CHECK_THAT(with(11, 12).line, contains("does not begin with a header"));
  CHECK_THAT(with(24, 3).line, contains("colour type 2 of 3 bits"));
  CHECK_THAT(with(25, 5).line, contains("colour type 5 of 8 bits"));
  CHECK_THAT(with(26, 1).line, contains("not in the standard"));
  CHECK_THAT(with(27, 1).line, contains("not in the standard"));
  CHECK_THAT(with(28, 2).line, contains("not in the standard"));
  CHECK(with(19, 0).code == ps::errc::format);  // no columns
  CHECK(with(19, 15).code == ps::errc::checksum);
  CHECK(with(29, 0).code == ps::errc::checksum);
  for (const std::size_t at : {0u, 12u, 24u, 26u}) CHECK(with(at, 99).code == ps::errc::format);
  CHECK(ps::png::recognises(good));
  CHECK_FALSE(ps::png::recognises({}));
  CHECK_FALSE(ps::png::recognises(ps::bytes_view(good).first(7)));
}

TEST_CASE("codec/png: sizes beyond the limits are refused before anything is allocated") {
  const auto refused = [](std::uint32_t width, std::uint32_t height, const ps::image_limits& limits) {
    const byte_vector file = to_vector(raw_png{width, height, 16, 6, true}.of_rows("x"));
    ps::png_scratch scratch;
    const ps::png codec{.limits = limits};
    codec_test::thrown error;
    std::uint64_t bytes = 0;
    error = caught([&] { static_cast<void>(codec.decode(file, scratch)); });
    bytes = scratch.image.pixels.capacity();
    CHECK(bytes == 0);
    return error;
  };
  CHECK(refused(0x7fff'ffff, 1, {}).code == ps::errc::limit);
  CHECK(refused(1, 0x7fff'ffff, {}).code == ps::errc::limit);
  CHECK(refused(0x8000'0000, 1, {}).code == ps::errc::format);
  CHECK(refused(65'500, 65'500, {}).code == ps::errc::limit);
  CHECK(refused(32'768, 32'768, {}).code == ps::errc::limit);  // in bytes
  CHECK_THAT(refused(101, 100, {.width = 100}).line, contains("101 x 100") && contains(".width"));
  CHECK_THAT(refused(100, 100, {.bytes = 29'999}).line, contains("100 x 100 pixels of 3 bytes"));
  CHECK(refused(100, 100, {.bytes = 30'000}).line.empty());
}

TEST_CASE("codec/png: wrong checksums are errors, except of chunks that do not matter") {
  const auto pixels = image_codec_test::some_picture<std::uint8_t>({16, 12}, 3, 5);
  for (const std::size_t idat_bytes : {100u, 1u << 20}) {
    const byte_vector good = png_test::small_file(idat_bytes);
    REQUIRE(png_test::decoded<ps::rgb8>(good) == pixels);
    byte_vector bad = good;
    const std::size_t last = good.size() - 12 - 1;  // of the last chunk of pixels
    bad[last] ^= std::byte{1};
    CHECK(png_test::failure<ps::rgb8>(bad).code == ps::errc::checksum);
    // The pixels are whole, though.
    ps::png_scratch scratch;
    const auto image = ps::png{.recover = true}.decode(bad, scratch);
    CHECK(copied(image.read(ps::whole_of(image.size()))) == pixels);
    CHECK(scratch.warnings == 1);
  }
  // So are they if the stream's own checksum is wrong, which libspng calls another fault.
  for (const bool both : {false, true}) {
    byte_vector bad = png_test::small_file(1 << 20);
    const std::size_t type = 37, checksum = bad.size() - 16;
    bad[checksum - 1] ^= std::byte{1};
    const std::string crc =
        raw_png::number(ps::detail::png_checksum(ps::bytes_view(bad).subspan(type, checksum - type)));
    std::memcpy(bad.data() + checksum, crc.data(), 4);
    if (both) bad[checksum] ^= std::byte{1};
    CHECK(png_test::failure<ps::rgb8>(bad).code == ps::errc::format);
    ps::png_scratch scratch;
    const auto image = ps::png{.recover = true}.decode(bad, scratch);
    CHECK(copied(image.read(ps::whole_of(image.size()))) == pixels);
    CHECK(scratch.warnings == 1);
    static_cast<void>(image.finish());
    CHECK(scratch.warnings == 1);  // once per image
    static_cast<void>(ps::png{.recover = true}.decode(bad, scratch).finish());
    CHECK(scratch.warnings == 2);
  }
  raw_png raw{2, 1, 8, 0};
  std::string exif =
      raw_png::chunk("eXIf", {"MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x02\0\0\0\0\0\0", 26});
  raw.before = exif;
  const auto first = [](const byte_vector& file) { return png_test::decoded<ps::gray8>(file).values.at(0); };
  CHECK(first(to_vector(raw.of_samples({1, 2}))) == 2);
  raw.before.back() = static_cast<char>(raw.before.back() ^ 1);
  CHECK(first(to_vector(raw.of_samples({1, 2}))) == 1);
  raw.before = raw_png::chunk("iCCP", "garbage") + raw_png::chunk("zTXt", std::string(3000, 'x'));
  raw.after = exif;  // behind the pixels
  CHECK(first(to_vector(raw.of_samples({1, 2}))) == 2);
  raw.before = raw_png::chunk("QQqq", "critical and unknown");
  CHECK(png_test::failure<ps::gray8>(to_vector(raw.of_samples({1, 2}))).code == ps::errc::format);
}

TEST_CASE("codec/png: of a transparent colour as many bits count as samples have") {
  const byte_vector file = codec_test::file_bytes(penstock_test::fixture("reports/gray1_transparent.png"));
  const auto rgba = png_test::decoded<ps::rgba8>(file).values;  // as Pillow converts it
  std::size_t white = 0;
  for (std::size_t i = 0; i < rgba.size(); i += 4) {
    REQUIRE(rgba[i + 3] == (rgba[i] == 255 ? 0 : 255));
    white += rgba[i] == 255 ? 1 : 0;
  }
  CHECK(white > 0);
  CHECK(white < rgba.size() / 4);
  for (const bool interlaced : {false, true})
    for (const unsigned depth : {1u, 2u, 4u, 8u}) {
      raw_png raw{1u << std::min(depth, 3u), 1, depth, 0, interlaced};
      std::vector<unsigned> samples;
      for (unsigned i = 0; i < raw.width; ++i) samples.push_back(i);
      raw.before = raw_png::chunk("tRNS", {"\xff\x55", 2});  // 1, 1, 5, 0x55
      const unsigned keyed = 0xff55 & ((1u << depth) - 1);
      const auto found = png_test::decoded<ps::rgba8>(to_vector(raw.of_samples(samples))).values;
      for (unsigned i = 0; i < raw.width; ++i) CHECK(found[i * 4 + 3] == (i == keyed ? 0 : 255));
    }
  raw_png raw{2, 1, 8, 2};
  raw.before = raw_png::chunk("tRNS", {"\1\1\0\2\2\3", 6});
  CHECK(png_test::decoded<ps::rgba8>(to_vector(raw.of_samples({1, 2, 3, 1, 2, 4}))).values ==
        std::vector<std::uint8_t>{1, 2, 3, 0, 1, 2, 4, 255});
}

TEST_CASE("codec/png: the orientation is in eXIf, in a text as ImageMagick writes it, or in XMP") {
  // EXIF's tag counts if there is one, as in Pillow's exif_transpose.
  const auto tiff = [](char value, char tag = '\x12') {
    std::string made("MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\0\0\0\0\0\0\0", 26);
    made[11] = tag;
    made[19] = value;
    return made;
  };
  const auto profile = [](const std::string& exif, std::string_view name = "exif") {
    std::string made = "\n" + std::string(name) + "\n      " + std::to_string(exif.size() + 6) + "\n";
    constexpr char digits[] = "0123456789abcdef";
    std::size_t count = 0;
    for (const char c : std::string("Exif\0\0", 6) + exif) {
      made += digits[static_cast<unsigned char>(c) >> 4];
      made += digits[static_cast<unsigned char>(c) & 15];
      if (++count % 36 == 0) made += '\n';
    }
    return made + "\n";
  };
  const auto text = [](std::string_view keyword, const std::string& value) {
    return raw_png::chunk("tEXt", std::string(keyword) + '\0' + value);
  };
  const auto packed = [](std::string_view keyword, const std::string& value) {
    return raw_png::chunk("zTXt", std::string(keyword) + std::string(2, '\0') + raw_png::stored(value));
  };
  const auto xmp = [](char value, bool compressed = false) {
    const std::string packet = std::string("<x:xmpmeta><r tiff:Orientation=\"") + value + "\"/></x:xmpmeta>";
    return raw_png::chunk("iTXt", std::string("XML:com.adobe.xmp") + '\0' + (compressed ? '\1' : '\0') +
                                      '\0' + "en" + '\0' + '\0' +
                                      (compressed ? raw_png::stored(packet) : packet));
  };
  const std::string exif_name = "Raw profile type exif";
  ps::png_scratch scratch;
  const auto turn = [&](const std::string& before, unsigned colour = 0) {
    raw_png raw{2, 1, 8, colour};
    raw.before = before;
    const byte_vector file = to_vector(raw.of_samples({1, 2}));
    return static_cast<int>(scratch.turn_of(file));
  };
  CHECK(turn("") == 1);
  CHECK(turn(text(exif_name, profile(tiff(6)))) == 6);
  CHECK(turn(packed(exif_name, profile(tiff(8)))) == 8);
  CHECK(turn(packed("Raw profile type APP1", profile(tiff(5), "APP1"))) == 5);
  CHECK(turn(raw_png::chunk("PLTE", "abcdef") + packed(exif_name, profile(tiff(8))), 3) == 8);
  CHECK(turn(xmp('3')) == 3);
  CHECK(turn(xmp('7', true)) == 7);
  CHECK(turn(raw_png::chunk("eXIf", tiff(2)) + text(exif_name, profile(tiff(6))) + xmp('3')) == 2);
  CHECK(turn(text(exif_name, profile(tiff(6))) + xmp('3')) == 6);
  CHECK(turn(xmp('3') + text(exif_name, profile(tiff(1)))) == 1);
  CHECK(turn(raw_png::chunk("eXIf", tiff(2, '\x10')) + xmp('3')) == 3);  // EXIF without the tag
  CHECK(turn(raw_png::chunk("eXIf", tiff(9)) + xmp('3')) == 1);          // and with a wrong one
  CHECK(turn(text("Raw profile type exif2", profile(tiff(6)))) == 1);
  CHECK(turn(text(exif_name, "no profile")) == 1);
  CHECK(turn(text(exif_name, "\nexif\n 2\nxy\n")) == 1);
  std::string damaged = packed(exif_name, profile(tiff(6)));
  damaged[60] ^= 1;
  CHECK(turn(damaged) == 1);
  damaged = text(exif_name, profile(tiff(6)));
  damaged.back() ^= 1;
  CHECK(turn(damaged) == 1);
  const std::string whole = packed(exif_name, profile(tiff(6))) + xmp('7', true);
  // within its bytes
  for (std::size_t size = 0; size < whole.size(); ++size) (void)turn(whole.substr(0, size));
  // Pixels are turned.
  raw_png raw{2, 1, 8, 0};
  raw.before = packed(exif_name, profile(tiff(2)));
  CHECK(png_test::decoded<ps::gray8>(to_vector(raw.of_samples({1, 2}))).values ==
        std::vector<std::uint8_t>{2, 1});
}

TEST_CASE("codec/png: files with metadata are turned as Pillow turns them") {
  for (const std::string& stem : image_files::stems(".png")) {
    CAPTURE(stem);
    CHECK(image_files::decoded(ps::png_as<ps::rgba8>{}, image_files::file(stem + ".png")) ==
          image_files::expected(stem));
  }
}

TEST_CASE("codec/png: truncated files are errors, or what is left of them") {
  for (const bool interlaced : {false, true}) {
    raw_png raw{16, 12, 8, 2, interlaced};
    raw.idat_bytes = 50;
    const auto pixels = image_codec_test::some_picture<std::uint8_t>({16, 12}, 3, 5);
    const byte_vector good = to_vector(raw.of_samples({pixels.values.begin(), pixels.values.end()}));
    std::size_t whole = 0, parts = 0;
    for (std::size_t size = 0; size < good.size(); ++size) {
      const byte_vector cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size));
      const auto error = png_test::failure<ps::rgb8>(cut);
      if (error.line.empty()) {
        ++whole;
        CHECK(png_test::decoded<ps::rgb8>(cut) == pixels);
      } else {
        CHECK(error.code == ps::errc::format);
        if (size > 33) CHECK_THAT(error.line, contains("[stage decode<png>]"));
      }
      ps::png_scratch scratch;
      const auto kept = caught([&] {
        const auto image = ps::png{.recover = true}.decode(cut, scratch);
        const auto got = copied(image.read(ps::whole_of(image.size())));
        REQUIRE(got.size == pixels.size);
        if (!interlaced)
          for (std::size_t i = 0, row = 48; i < got.values.size(); i += row) {
            const std::vector<std::uint8_t> one(got.values.begin() + static_cast<std::ptrdiff_t>(i),
                                                got.values.begin() + static_cast<std::ptrdiff_t>(i + row));
            const bool same =
                std::equal(one.begin(), one.end(), pixels.values.begin() + static_cast<std::ptrdiff_t>(i));
            if (!same) REQUIRE(one == std::vector<std::uint8_t>(row));
          }
        if (got != pixels &&
            got != picture<std::uint8_t>{got.size, 3, std::vector<std::uint8_t>(got.values.size())})
          ++parts;
        CHECK((scratch.warnings == 0) == error.line.empty());
      });
      if (size > 33) CHECK(kept.line.empty());
    }
    CHECK(whole <= 16);  // only the end is missing
    CHECK(parts > 100);
  }
}

TEST_CASE("codec/png: rows below a crop are not decoded") {
  const byte_vector good = png_test::small_file(100);
  const byte_vector cut(good.begin(), good.begin() + 33 + 112 * 3);
  ps::png_scratch scratch;
  const auto image = ps::png{}.decode(cut, scratch);
  const auto pixels = image_codec_test::some_picture<std::uint8_t>({16, 12}, 3, 5);
  CHECK(copied(image.read({3, 1, 5, 3})) == pixels.part({3, 1, 5, 3}));
  CHECK(caught([&] { static_cast<void>(image.read({3, 1, 5, 11})); }).code == ps::errc::format);
}

TEST_CASE("codec/png: any bit may be wrong") {
  const byte_vector good = png_test::encoded<ps::rgba8>(
      image_codec_test::some_picture<std::uint8_t>({9, 7}, 4, 3), {.shown = ps::orientation::rotated_90});
  ps::png_scratch scratch;
  std::size_t refused = 0;
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit)
    for (const bool recover : {false, true}) {
      byte_vector bad = good;
      bad[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
      const auto error = caught([&] {
        const ps::png_as<ps::rgba8> codec{.limits = {.width = 64, .height = 64}, .recover = recover};
        const auto image = codec.decode(bad, scratch);
        const auto pixels = image.finish();
        REQUIRE(pixels.shape() == image.shape());
      });
      if (error.line.empty()) continue;
      ++refused;
      REQUIRE(ps::depends_on_bytes(error.code));
    }
  CHECK(refused > good.size() * 4);
}

TEST_CASE("codec/png: nothing is allocated once the scratch has grown") {
  std::vector<byte_vector> files;
  for (std::uint32_t i = 0; i < 6; ++i)
    files.push_back(png_test::encoded<ps::rgb8>(
        image_codec_test::some_picture<std::uint8_t>({60 + 7 * i, 80 - 9 * i}, 3, i),
        {.shown = static_cast<ps::orientation>(1 + i)}));
  raw_png interlaced{50, 60, 8, 0, true};
  files.push_back(to_vector(interlaced.of_samples(std::vector<unsigned>(3000, 9))));
  ps::png_scratch scratch;
  const auto all = [&] {
    for (const byte_vector& file : files) {
      const auto image = ps::png{}.decode(file, scratch);
      static_cast<void>(image.read({5, 5, 20, 20}));
      static_cast<void>(image.finish());
    }
  };
  all();
  CHECK(penstock_test::allocations_of(all) == 0);
  CHECK(scratch.warnings == 0);
}

TEST_CASE("codec/png: whichever allocation fails, there is one exception and nothing is lost") {
  const auto stored = image_codec_test::some_picture<std::uint8_t>({20, 30}, 3, 1);
  const byte_vector file = png_test::encoded<ps::rgb8>(stored, {.shown = ps::orientation::rotated_270});
  const auto expected = image_codec_test::shown(stored, ps::orientation::rotated_270);
  const byte_vector interlaced =
      to_vector(raw_png{20, 30, 8, 2, true}.of_samples({stored.values.begin(), stored.values.end()}));
  for (const bool recover : {false, true})
    for (const byte_vector& one : {file, interlaced}) {
      ps::png_scratch scratch;  // goes on after each failure
      const std::uint64_t failures = penstock_test::fail_each_allocation([&] {
        ps::png_scratch fresh;
        const ps::png codec{.recover = recover};
        static_cast<void>(codec.decode(one, fresh).finish());
        static_cast<void>(codec.decode(one, scratch).finish());
      });
      CHECK(failures >= 6);
      CHECK(scratch.warnings == 0);
      const auto image = ps::png{}.decode(one, scratch);
      CHECK(copied(image.read(ps::whole_of(image.size()))) ==
            (&one == &file || one == file ? expected : stored));
    }
}

TEST_CASE("codec/png: real files are as libspng decodes them, or errors") {
  const auto folder = penstock_test::test_data("png");
  if (!folder) {
    WARN("PENSTOCK_TEST_DATA has no folder png; real files are not decoded");
    return;
  }
  std::size_t good = 0, bad = 0;
  std::set<std::string> only_here, only_there;
  codec_test::each_file(*folder, [&](const std::string& name, const byte_vector& file) {
    if (!name.ends_with(".png") && !ps::png::recognises(file)) return;
    CAPTURE(name);
    const auto expected = png_test::plain<std::uint8_t>(file, SPNG_FMT_RGBA8, 4);
    const ps::png_as<ps::rgba8> codec{.limits = {.width = 8192, .height = 8192}, .orient = false};
    ps::png_scratch scratch;
    picture<std::uint8_t> got;
    const auto error = caught([&] {
      const auto image = codec.decode(file, scratch);
      got = copied(image.read(ps::whole_of(image.size())));
    });
    if (!error.line.empty()) {
      ++bad;
      CHECK(ps::depends_on_bytes(error.code));
      // libspng's plain call does not look at the checksum behind the last row.
      if (!expected.values.empty() && error.code != ps::errc::checksum)
        only_there.insert(name + ": " + error.line);
      return;
    }
    ++good;
    if (expected.values.empty()) {
      only_here.insert(name);
      return;
    }
    REQUIRE(got == expected);
    if (expected.values.size() > 2'000'000 && !image_codec_test::thorough()) return;
    image_codec_test::check_parts(codec.decode(file, scratch), expected, good, 2);
    const auto rgb = png_test::plain<std::uint8_t>(file, SPNG_FMT_RGB8, 3);
    REQUIRE(png_test::decoded<ps::rgb8>(file, {.orient = false}) == rgb);
    REQUIRE(png_test::decoded<ps::gray8>(file, {.orient = false}) == png_test::in_gray(rgb));
  });
  CHECK(good > 60);
  CHECK(bad > 20);
  CHECK(only_here == std::set<std::string>{});
  CHECK(only_there == std::set<std::string>{});
}
