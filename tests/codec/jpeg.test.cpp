// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/codec/jpeg.hpp>

#include <penstock/codec/jpeg_encoder.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/count_allocations.hpp"
#include "support/image_files.hpp"
#include "support/plain_jpeg.hpp"
#include "support/test_data.hpp"

#include <algorithm>
#include <cstdint>
#include <new>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

// In a namespace, because a build may compile all tests of a room as one file.
namespace jpeg_test {

namespace ps = penstock;
using codec_test::byte_vector;
using codec_test::caught;
using plain_jpeg::sampling;
using values = std::vector<std::uint8_t>;

namespace {

template <std::size_t Channels>
values copy_of(const ps::pixel_view<std::uint8_t, Channels>& pixels) {
  values copy;
  for (std::size_t y = 0; y < pixels.height(); ++y)
    copy.insert(copy.end(), pixels.row(y), pixels.row(y) + pixels.row_values());
  return copy;
}

/// Random parts, among them single pixels, rows, columns and the whole.
ps::image_part some_part(std::mt19937& random, const ps::image_size& size, int round) {
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  if (round == 0) return ps::whole_of(size);
  ps::image_part part{below(size.width), below(size.height), 0, 0};
  part.width = 1 + below(round % 3 == 0 ? std::min(size.width - part.x, 5u) : size.width - part.x);
  part.height = 1 + below(round % 4 == 0 ? std::min(size.height - part.y, 5u) : size.height - part.y);
  if (round == 1) part = {size.width - 1, size.height - 1, 1, 1};
  if (round == 2) part = {0, part.y, size.width, 1};
  if (round == 3) part = {part.x, 0, 1, size.height};
  return part;
}

/// The first way in which a file's parts differ from the parts of these pixels.
template <class Format>
std::string difference(ps::bytes_view file, const values& whole, const ps::image_size& size, int rounds,
                       ps::jpeg_scratch& scratch, const ps::jpeg_as<Format>& codec = {}) {
  constexpr std::size_t channels = Format::channels;
  std::mt19937 random(size.width * 31 + size.height);
  for (int round = 0; round < rounds; ++round) {
    const ps::image_part part = some_part(random, size, round);
    const values expected = copy_of(ps::pixel_view<std::uint8_t, channels>(whole.data(), size).part(part));
    const std::string at = " of part " + std::to_string(part.width) + " x " + std::to_string(part.height) +
                           " at " + std::to_string(part.x) + ", " + std::to_string(part.y);
    const auto image = codec.decode(file, scratch);
    if (!(image.size() == size)) return "the size";
    const std::size_t w = part.width, h = part.height, n = w * h * channels;
    const ps::extents shape(h, w, channels);
    switch (round % 4) {
      case 0: {
        if (copy_of(image.read(part)) != expected) return "read" + at;
        if (copy_of(image.read(part)) != expected) return "the second read" + at;
        break;
      }
      case 1: {
        values made(n + 2, 77);
        image.draw(part, ps::destination<std::uint8_t>(made.data() + 1, shape));
        if (made.front() != 77 || made.back() != 77) return "the surroundings" + at;
        if (!std::equal(expected.begin(), expected.end(), made.begin() + 1)) return "dense" + at;
        break;
      }
      case 2: {
        values made(n, 77), turned(n);
        const ps::element_strides strides{static_cast<std::int64_t>(w), 1, static_cast<std::int64_t>(w * h)};
        image.draw(part, ps::destination<std::uint8_t>(made.data(), shape, strides));
        for (std::size_t i = 0; i < w * h; ++i)
          for (std::size_t c = 0; c < channels; ++c) turned[i * channels + c] = made[c * w * h + i];
        if (turned != expected) return "planes" + at;
        break;
      }
      default: {
        const std::size_t pitch = w * channels + 5;
        values made(pitch * h, 77);
        const ps::element_strides strides{static_cast<std::int64_t>(pitch),
                                          static_cast<std::int64_t>(channels), 1};
        image.draw(part, ps::destination<std::uint8_t>(made.data(), shape, strides));
        for (std::size_t y = 0; y < h; ++y) {
          const auto row = made.begin() + static_cast<std::ptrdiff_t>(y * pitch);
          const auto wanted = expected.begin() + static_cast<std::ptrdiff_t>(y * w * channels);
          if (!std::equal(wanted, wanted + static_cast<std::ptrdiff_t>(w * channels), row))
            return "pitched" + at;
          if (row[static_cast<std::ptrdiff_t>(w * channels)] != 77) return "the gaps" + at;
        }
      }
    }
  }
  return {};
}

template <class Format>
std::string difference(ps::bytes_view file, int rounds, ps::jpeg_scratch& scratch) {
  const auto plain = plain_jpeg::decode(file, Format::channels);
  if (!plain) return "the library cannot decode it";
  return difference<Format>(file, plain->pixels, plain->size, rounds, scratch, {.orient = false});
}
std::string differences(ps::bytes_view file, int rounds, ps::jpeg_scratch& scratch) {
  return difference<ps::rgb8>(file, rounds, scratch) + difference<ps::gray8>(file, rounds, scratch) +
         difference<ps::rgba8>(file, rounds, scratch);
}

byte_vector soft_file(const ps::image_size& size, const ps::jpeg_encoding& how = {}) {
  const values pixels = plain_jpeg::picture(size, 3);
  ps::jpeg_encoder encoder;
  return codec_test::to_vector(encoder.encode(ps::pixel_view<std::uint8_t, 3>(pixels.data(), size), how));
}

template <class Format = ps::rgb8>
values pixels_of(ps::bytes_view file, const ps::jpeg_as<Format>& codec = {}) {
  ps::jpeg_scratch scratch;
  const auto all = codec.decode(file, scratch).finish().values();
  return {all.begin(), all.end()};
}

/// The file with an EXIF block behind its first marker.
byte_vector with_orientation(const byte_vector& file, int orientation) {
  std::string block(
      "\xff\xe1\0\x22"
      "Exif\0\0MM\0*\0\0\0\x08\0\1\x01\x12\0\3\0\0\0\1\0\0\0\0\0\0\0\0",
      36);
  block[29] = static_cast<char>(orientation);
  byte_vector made(file.begin(), file.begin() + 2);
  const auto bytes = ps::bytes_of(block);
  made.insert(made.end(), bytes.begin(), bytes.end());
  made.insert(made.end(), file.begin() + 2, file.end());
  return made;
}

/// A file that consists of a header only.
byte_vector header(std::uint32_t width, std::uint32_t height, int bits = 8, int frame = 0xc0,
                   int channels = 3) {
  std::string text("\xff\xd8\xff", 3);
  const auto put = [&](std::uint32_t n) { text += static_cast<char>(n); };
  put(static_cast<std::uint32_t>(frame)), put(0), put(static_cast<std::uint32_t>(8 + 3 * channels));
  put(static_cast<std::uint32_t>(bits)), put(height >> 8), put(height), put(width >> 8), put(width);
  put(static_cast<std::uint32_t>(channels));
  for (int i = 0; i < channels; ++i) put(static_cast<std::uint32_t>(i + 1)), put(0x11), put(0);
  text += std::string("\xff\xda\0", 3);
  put(static_cast<std::uint32_t>(6 + 2 * channels)), put(static_cast<std::uint32_t>(channels));
  for (int i = 0; i < channels; ++i) put(static_cast<std::uint32_t>(i + 1)), put(0);
  put(0), put(63), put(0);
  return codec_test::to_vector(text + std::string(40, '\x12'));
}

/// A session in which the library fails as if it had met this error.
struct reporter : ps::detail::jpeg_session {
  jpeg_common_struct info{};

  codec_test::thrown report(int code) {
    info.err = handlers();
    info.client_data = static_cast<jpeg_session*>(this);
    info.err->msg_code = code;
    if (attempt(&meet, *this)) return {};
    return caught([&] { fail(); });
  }
  static void meet(reporter& r) { (*r.info.err->error_exit)(&r.info); }
};

}  // namespace

TEST_CASE("codec/jpeg: every sampling, every part") {
  ps::jpeg_scratch scratch;
  const std::vector<std::vector<sampling>> samplings{{{1, 1}, {1, 1}, {1, 1}},
                                                     {{2, 1}, {1, 1}, {1, 1}},
                                                     {{2, 2}, {1, 1}, {1, 1}},
                                                     {{1, 2}, {1, 1}, {1, 1}},
                                                     {{4, 1}, {1, 1}, {1, 1}},
                                                     {{1, 4}, {1, 1}, {1, 1}},
                                                     {{4, 2}, {1, 1}, {1, 1}},
                                                     {{2, 2}, {2, 1}, {1, 2}},
                                                     {{2, 2}, {1, 2}, {1, 2}},
                                                     {{2, 2}, {2, 1}, {2, 1}},
                                                     {{2, 1}, {2, 1}, {2, 1}},
                                                     {{1, 1}, {2, 2}, {1, 1}},
                                                     {{2, 1}, {1, 2}, {1, 1}},
                                                     {{2, 2}},
                                                     {{1, 1}}};
  for (const auto& factors : samplings) {
    for (const bool progressive : {false, true}) {
      for (const ps::image_size size : {ps::image_size{1, 1}, {2, 3}, {17, 33}, {97, 70}, {160, 144}}) {
        const auto file = plain_jpeg::encode(size, {.factors = factors, .progressive = progressive});
        INFO(size.width << " x " << size.height << ", " << factors[0].h << factors[0].v << ", channels "
                        << factors.size() << ", progressive " << progressive);
        CHECK(differences(file, 40, scratch).empty());
      }
    }
  }
}

TEST_CASE("codec/jpeg: other kinds of files") {
  ps::jpeg_scratch scratch;
  const std::vector<sampling> half{{2, 2}, {1, 1}, {1, 1}}, one(4, sampling{1, 1});
  const std::vector<sampling> four{{2, 2}, {1, 1}, {1, 1}, {2, 2}};
  for (const plain_jpeg::kind& kind : {plain_jpeg::kind{.factors = half, .restart = 3},
                                       {.factors = half, .separate = true},
                                       {.factors = half, .arithmetic = true},
                                       {.factors = half, .progressive = true, .arithmetic = true},
                                       {.factors = {{1, 1}, {1, 1}, {1, 1}}, .rgb = true},
                                       {.factors = one, .rgb = true},
                                       {.factors = four},
                                       {.factors = four, .progressive = true}}) {
    for (const ps::image_size size : {ps::image_size{5, 4}, {99, 83}}) {
      const auto file = plain_jpeg::encode(size, kind);
      if (file.empty()) continue;  // this libjpeg was built without arithmetic coding
      CHECK(differences(file, 40, scratch).empty());
    }
  }
}

TEST_CASE("codec/jpeg: real files") {
  const auto folder = penstock_test::test_data("jpeg");
  if (!folder) {
    WARN("PENSTOCK_TEST_DATA has no folder jpeg: nothing is tested");
    return;
  }
  ps::jpeg_scratch scratch;
  std::size_t decoded = 0, refused = 0;
  codec_test::each_file(*folder, [&](const std::string& name, const byte_vector& file) {
    INFO(name);
    const auto plain = plain_jpeg::decode(file, 3);
    const auto e =
        caught([&] { (void)ps::jpeg{.limits = {.bytes = 300'000'000}}.decode(file, scratch).finish(); });
    if (!e.line.empty()) {
      ++refused;
      // What the library decodes without a warning, this does too.
      CHECK((!plain || plain->warnings != 0));
      return;
    }
    ++decoded;
    REQUIRE(plain);
    if (plain->size.width > 1500) return;
    CHECK(differences(file, penstock_test::long_tests() ? 60 : 9, scratch).empty());
  });
  CHECK(decoded > 60);
  CHECK(refused > 60);
}

TEST_CASE("codec/jpeg: photos") {
  const auto folder = penstock_test::test_data("photos");
  if (!folder) {
    WARN("PENSTOCK_TEST_DATA has no folder photos: nothing is tested");
    return;
  }
  ps::jpeg_scratch scratch;
  std::size_t count = 0;
  codec_test::each_file(*folder, [&](const std::string& name, const byte_vector& file) {
    if (++count > 40 && !penstock_test::long_tests()) return;
    INFO(name);
    CHECK(difference<ps::rgb8>(file, 12, scratch).empty());
  });
}

TEST_CASE("codec/jpeg: files with metadata are turned as Pillow turns them") {
  for (const std::string& stem : image_files::stems(".jpg")) {
    CAPTURE(stem);
    const auto shown = image_files::in_rgb(image_files::expected(stem));
    CHECK(image_files::distance(image_files::decoded(ps::jpeg{}, image_files::file(stem + ".jpg")), shown) <=
          2);
  }
}

TEST_CASE("codec/jpeg: orientations") {
  const ps::image_size size{45, 30};
  const byte_vector file = soft_file(size);
  const values upright = pixels_of(file);
  ps::jpeg_scratch scratch;
  for (int o = 0; o <= 9; ++o) {
    INFO(o);
    const byte_vector turned = with_orientation(file, o);
    const auto how = static_cast<ps::orientation>(o >= 1 && o <= 8 ? o : 1);
    const ps::image_size shown = ps::oriented(size, how);
    values expected(upright.size());
    ps::orient_pixels(
        ps::pixel_view<std::uint8_t, 3>(upright.data(), size), how,
        ps::destination<std::uint8_t>(expected.data(),
                                      ps::extents(std::size_t{shown.height}, std::size_t{shown.width}, 3)));
    CHECK(difference<ps::rgb8>(turned, expected, shown, 40, scratch).empty());
    CHECK(difference<ps::rgb8>(turned, upright, size, 4, scratch, {.orient = false}).empty());
  }
  // XMP counts where EXIF has no orientation, wherever it stands.
  const auto with_xmp = [](const byte_vector& image, char value) {
    const std::string packet =
        std::string("http://ns.adobe.com/xap/1.0/\0", 29) + "<r tiff:Orientation=\"" + value + "\"/>";
    std::string block("\xff\xe1\0", 3);
    block += static_cast<char>(packet.size() + 2);
    block += packet;
    byte_vector made = image;
    const auto bytes = ps::bytes_of(block);
    made.insert(made.begin() + 2, bytes.begin(), bytes.end());
    return made;
  };
  const auto turned_size = [&](const byte_vector& image) { return ps::jpeg{}.decode(image, scratch).size(); };
  const ps::image_size sideways{size.height, size.width};
  CHECK(turned_size(with_xmp(file, '6')) == sideways);
  CHECK(turned_size(with_xmp(file, '3')) == size);
  CHECK(turned_size(with_xmp(with_orientation(file, 1), '6')) == size);
  CHECK(turned_size(with_orientation(with_xmp(file, '6'), 1)) == size);
  CHECK(turned_size(with_orientation(with_xmp(file, '1'), 6)) == sideways);
  // The first block of EXIF counts; a damaged one means nothing.
  CHECK(ps::jpeg{}.decode(with_orientation(with_orientation(file, 1), 6), scratch).size() ==
        ps::image_size{30, 45});
  byte_vector damaged = with_orientation(file, 6);
  damaged[12] = std::byte{'x'};
  CHECK(ps::jpeg{}.decode(damaged, scratch).size() == size);
}

TEST_CASE("codec/jpeg: DALI's references") {
  const auto folder = penstock_test::test_data("jpeg/dali_orientation");
  if (!folder) {
    WARN("PENSTOCK_TEST_DATA has no folder jpeg/dali_orientation: nothing is tested");
    return;
  }
  int compared = 0;
  codec_test::each_file(*folder, [&](const std::string& name, const byte_vector& reference) {
    if (!name.ends_with(".npy")) return;
    const byte_vector file = codec_test::file_bytes(*folder / (name.substr(0, name.size() - 4) + ".jpg"));
    const values pixels = pixels_of(file);
    REQUIRE(reference.size() > pixels.size());
    const std::byte* const expected = reference.data() + (reference.size() - pixels.size());
    std::size_t far = 0;
    for (std::size_t i = 0; i < pixels.size(); ++i)
      far += std::abs(std::to_integer<int>(expected[i]) - int{pixels[i]}) > 3;
    INFO(name << ": " << far << " of " << pixels.size());
    CHECK(far * 100 < pixels.size());  // another decoder wrote them
    ++compared;
  });
  CHECK(compared == 3);
}

TEST_CASE("codec/jpeg: what it refuses") {
  ps::jpeg_scratch scratch;
  const auto refused = [&](const byte_vector& file, ps::errc code, std::string_view words) {
    const auto e = caught([&] { (void)ps::jpeg{}.decode(file, scratch).finish(); });
    INFO(e.line);
    CHECK(e.code == code);
    CHECK(e.line.find(words) != std::string::npos);
  };
  const auto text = [](std::string_view t) { return codec_test::to_vector(t); };
  refused({}, ps::errc::format, "there are no bytes");
  refused(text("\x89PNG\r\n\x1a\n"), ps::errc::format, "no jpeg file");
  refused(text("\xff"), ps::errc::format, "no jpeg file");
  refused(text("\xff\xd8"), ps::errc::format, "truncated");
  refused(text("\xff\xd8\xff\xd9"), ps::errc::format, "damaged");
  refused(text(std::string_view("\xff\xd8\xff\xe0\xff\xff", 6)), ps::errc::format, "truncated");
  refused(header(64, 64, 12), ps::errc::format, "12 bits per sample");
  refused(header(64, 64, 12, 0xc1), ps::errc::format, "12 bits per sample");
  refused(header(64, 64, 8, 0xc3), ps::errc::format, "lossless");
  refused(header(64, 64, 16, 0xcb), ps::errc::format, "lossless");
  refused(header(64, 64, 8, 0xc5), ps::errc::format, "hierarchical");
  refused(header(64, 64, 8, 0xc0, 2), ps::errc::format, "1, 3 or 4");
  refused(header(0, 64), ps::errc::format, "damaged");
  refused(header(64, 0), ps::errc::format, "");
  refused(header(64, 64), ps::errc::format, "");  // no tables: those of other files do not serve
  const byte_vector good = soft_file({40, 30});
  const auto image = ps::jpeg{}.decode(good, scratch);
  const auto outside = caught([&] { (void)image.read({30, 0, 11, 30}); });
  CHECK(outside.code == ps::errc::argument);
  CHECK(image.read({3, 3, 0, 0}).height() == 0);
  image.draw({3, 3, 0, 0}, {});
  CHECK(image.read({3, 3, 5, 5}).width() == 5);
}

TEST_CASE("codec/jpeg: no table of one file decodes the next") {
  ps::jpeg_scratch scratch;
  const byte_vector good = soft_file({40, 30});
  byte_vector without;  // the same without DQT
  for (std::size_t i = 0; i < good.size();) {
    if (good[i] == std::byte{0xff} && i + 3 < good.size() && good[i + 1] == std::byte{0xdb}) {
      i += 2 + (std::to_integer<std::size_t>(good[i + 2]) << 8) + std::to_integer<std::size_t>(good[i + 3]);
      continue;
    }
    without.push_back(good[i++]);
  }
  REQUIRE(without.size() < good.size());
  (void)ps::jpeg{}.decode(good, scratch).finish();
  const auto e = caught([&] { (void)ps::jpeg{}.decode(without, scratch).finish(); });
  CHECK(e.code == ps::errc::format);
  CHECK(e.line.find("uantization") != std::string::npos);
  CHECK(e.line.find("[stage decode<jpeg>]") != std::string::npos);
}

TEST_CASE("codec/jpeg: limits, before anything is allocated") {
  ps::jpeg_scratch scratch;
  for (const int frame : {0xc0, 0xc2, 0xc9}) {
    const auto e = caught([&] { (void)ps::jpeg{}.decode(header(65500, 65500, 8, frame), scratch); });
    CHECK(e.code == ps::errc::limit);
    CHECK(e.line.find("65500 x 65500") != std::string::npos);
    const auto bytes = caught([&] { (void)ps::jpeg{}.decode(header(32000, 32000, 8, frame), scratch); });
    CHECK(bytes.code == ps::errc::limit);
    CHECK(bytes.line.find("32000 x 32000 pixels of 3 bytes") != std::string::npos);
    const auto maximum = caught([&] { (void)ps::jpeg{}.decode(header(65535, 65535, 8, frame), scratch); });
    CHECK(maximum.code == ps::errc::limit);
    CHECK(maximum.line.find("wider or higher than 65500 pixels") != std::string::npos);
  }
  CHECK(scratch.reader().memory_held() < 1 << 20);
  const byte_vector file = soft_file({41, 30});
  CHECK(caught([&] { (void)ps::jpeg{.limits = {.width = 40}}.decode(file, scratch); }).code ==
        ps::errc::limit);
  CHECK(caught([&] { (void)ps::jpeg{.limits = {.height = 29}}.decode(file, scratch); }).code ==
        ps::errc::limit);
  CHECK(caught([&] { (void)ps::jpeg{.limits = {.bytes = 3689}}.decode(file, scratch); }).code ==
        ps::errc::limit);
  CHECK(ps::jpeg{.limits = {.bytes = 3690}}.decode(file, scratch).finish().values().size() == 3690);
  CHECK(ps::jpeg_as<ps::gray8>{.limits = {.bytes = 1230}}.decode(file, scratch).finish().values().size() ==
        1230);
}

TEST_CASE("codec/jpeg: scans are limited") {
  ps::jpeg_scratch scratch;
  const byte_vector file = soft_file({64, 64}, {.progressive = true});
  const auto e = caught([&] { (void)ps::jpeg{.scans = 4}.decode(file, scratch).finish(); });
  CHECK(e.code == ps::errc::limit);
  CHECK(e.line.find("more than 4 scans") != std::string::npos);
  CHECK(ps::jpeg{.scans = 10}.decode(file, scratch).finish().values().size() == 64 * 64 * 3);
}

TEST_CASE("codec/jpeg: a progressive file without its last scans is smoothed, and its parts are") {
  ps::jpeg_scratch scratch;
  byte_vector file = soft_file({120, 100}, {.progressive = true});
  std::vector<std::size_t> starts;
  for (std::size_t i = 0; i + 1 < file.size(); ++i)
    if (file[i] == std::byte{0xff} && file[i + 1] == std::byte{0xda}) starts.push_back(i);
  REQUIRE(starts.size() > 4);
  for (const std::size_t keep : {std::size_t{1}, std::size_t{2}, std::size_t{4}}) {
    byte_vector some(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(starts[keep]));
    some.push_back(std::byte{0xff});
    some.push_back(std::byte{0xd9});
    INFO(keep);
    CHECK(differences(some, 30, scratch).empty());
  }
}

TEST_CASE("codec/jpeg: truncated files") {
  ps::jpeg_scratch scratch;
  for (const bool progressive : {false, true}) {
    const ps::image_size size{120, 90};
    const byte_vector file = soft_file(size, {.quality = 95, .progressive = progressive});
    const values whole = pixels_of(file);
    for (std::size_t i = 0; i < 50; ++i) {
      const byte_vector part(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(file.size() * i / 50));
      INFO(i << " fiftieths");
      const auto e = caught([&] { (void)ps::jpeg{}.decode(part, scratch).finish(); });
      CHECK(e.code == ps::errc::format);
      if (i > 0) CHECK(e.line.find("truncated") != std::string::npos);
      const std::uint64_t before = scratch.warnings;
      values some;
      const auto still = caught([&] {
        const auto image = ps::jpeg{.recover = true}.decode(part, scratch);
        const auto all = image.finish().values();
        some.assign(all.begin(), all.end());
        (void)image.read({0, 0, 5, 90});  // an image counts once
      });
      if (still.line.empty()) {
        CHECK(scratch.warnings == before + 1);
        CHECK(difference<ps::rgb8>(part, some, size, 6, scratch, {.recover = true}).empty());
        const auto plain = plain_jpeg::decode(part, 3);
        REQUIRE(plain);
        CHECK(plain->pixels == some);
      } else {
        CHECK(still.code == ps::errc::format);
        CHECK(i < 15);  // in its header
      }
    }
    // A sound file is no warning.
    const std::uint64_t before = scratch.warnings;
    CHECK(difference<ps::rgb8>(file, whole, size, 6, scratch, {.recover = true}).empty());
    CHECK(scratch.warnings == before);
  }
  // Only the last marker is missing: of a baseline file, nothing that counts.
  byte_vector file = soft_file({64, 48});
  const values whole = pixels_of(file);
  file.resize(file.size() - 2);
  CHECK(pixels_of(file) == whole);
}

TEST_CASE("codec/jpeg: truncated files with arithmetic coding") {
  ps::jpeg_scratch scratch;
  for (const bool progressive : {false, true}) {
    const auto file = plain_jpeg::encode(
        {120, 90}, {.factors = {{2, 2}, {1, 1}, {1, 1}}, .progressive = progressive, .arithmetic = true});
    if (file.empty()) {
      WARN("this libjpeg was built without arithmetic coding: nothing is tested");
      return;
    }
    CHECK(pixels_of(file).size() == 120 * 90 * 3);
    for (std::size_t i = 1; i <= 50; ++i) {
      const std::size_t kept = i == 50 ? file.size() - 2 : file.size() * i / 50;
      const byte_vector part(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(kept));
      INFO(kept << " of " << file.size());
      const auto e = caught([&] { (void)ps::jpeg{}.decode(part, scratch).finish(); });
      CHECK(e.code == ps::errc::format);
      CHECK(e.line.find("truncated") != std::string::npos);
      if (i < 25) continue;
      const std::uint64_t before = scratch.warnings;
      const auto still = caught([&] { (void)ps::jpeg{.recover = true}.decode(part, scratch).finish(); });
      CHECK((scratch.warnings == before + 1) == still.line.empty());
      if (!still.line.empty())
        CHECK(still.line.find("damaged") != std::string::npos);  // within a scan's header
    }
  }
}

TEST_CASE("codec/jpeg: the library's errors that have a sentence of their own") {
  CHECK(reporter().report(JERR_IMAGE_TOO_BIG).code == ps::errc::limit);
  const auto arithmetic = reporter().report(JERR_ARITH_NOTIMPL);
  CHECK(arithmetic.code == ps::errc::format);
  CHECK(arithmetic.line.find("without arithmetic coding") != std::string::npos);
  for (const int code : {JERR_BAD_LIB_VERSION, JERR_BAD_STRUCT_SIZE}) {
    const auto version = reporter().report(code);
    CHECK(version.code == ps::errc::argument);
    CHECK(version.line.find("another libjpeg than it was built with") != std::string::npos);
  }
  CHECK(reporter().report(JERR_NO_SOI).line.find("damaged") != std::string::npos);
  CHECK_THROWS_AS(reporter().report(JERR_OUT_OF_MEMORY), std::bad_alloc);
}

TEST_CASE("codec/jpeg: memory is given up to the limit, whatever came before") {
  const auto pieces = [](ps::detail::jpeg_arena& arena) {
    int count = 0;
    while (arena.take(1000, 1'000'000) != nullptr) ++count;  // each takes 1,024
    return count;
  };
  ps::detail::jpeg_arena fresh, large, failed;
  CHECK(pieces(fresh) == 976);
  CHECK(fresh.held() <= 2'000'000);
  for (int i = 0; i < 100; ++i) REQUIRE(large.take(100'000, 1 << 30) != nullptr);
  large.reset(false);
  CHECK(large.held() == 0);
  CHECK(pieces(large) == 976);
  CHECK(large.held() == 100 * 100'032);  // as much as the image got, in one piece
  for (int i = 0; i < 100; ++i) REQUIRE(failed.take(100'000, 1 << 30) != nullptr);
  failed.reset(true);
  CHECK(failed.held() == 100'032);
  CHECK(pieces(failed) == 976);
  CHECK(failed.held() <= 2'000'000);
  CHECK(failed.take(2'000'000, 1'000'000) == nullptr);
  CHECK(failed.take(~std::size_t{0}, ~std::uint64_t{0}) == nullptr);
}

TEST_CASE("codec/jpeg: where there is no memory to double what is held, a little will do") {
  ps::detail::jpeg_arena arena;
  REQUIRE(arena.take(300'032, 1 << 30) != nullptr);
  penstock_test::failing_allocation = 1;
  CHECK(arena.take(100'032, 1 << 30) != nullptr);
  CHECK(penstock_test::failing_allocation == 0);
  CHECK(arena.held() == 400'064);
  // What was learnt is forgotten if there is no memory for it.
  arena.reset(false);
  penstock_test::failing_allocation = 1;
  CHECK(arena.take(100, 1 << 30) != nullptr);
  CHECK(arena.held() == 64 << 10);
  penstock_test::failing_allocation = 1;
  CHECK_THROWS_AS(arena.take(100'032, 1 << 30), std::bad_alloc);  // no larger than it must be
  CHECK(arena.take(100'032, 1 << 30) != nullptr);
}

TEST_CASE("codec/jpeg: a file that is refused takes no memory from those that follow") {
  ps::jpeg_scratch scratch;
  const byte_vector good = soft_file({200, 150}, {.progressive = true});
  for (int i = 0; i < 3; ++i) (void)ps::jpeg{}.decode(good, scratch).finish();
  const std::size_t held = scratch.reader().memory_held();
  CHECK(held < 1 << 20);
  const byte_vector large = header(1500, 1500, 8, 0xc2);  // no tables
  const auto e = caught([&] { (void)ps::jpeg{}.decode(large, scratch).finish(); });
  CHECK(e.code == ps::errc::format);
  CHECK(scratch.reader().memory_held() == held);
  CHECK(penstock_test::allocations_of([&] { (void)ps::jpeg{}.decode(good, scratch).finish(); }) == 0);
  CHECK(scratch.reader().memory_held() == held);
}

TEST_CASE("codec/jpeg: flipped bits") {
  ps::jpeg_scratch scratch;
  std::mt19937 random(7);
  for (const auto& encoding : {ps::jpeg_encoding{}, ps::jpeg_encoding{.progressive = true}}) {
    const byte_vector file = soft_file({70, 50}, encoding);
    for (int round = 0; round < 400; ++round) {
      byte_vector bad = file;
      for (int i = 0; i < 1 + round % 3; ++i)
        bad[random() % bad.size()] ^= std::byte{1} << static_cast<int>(random() % 8);
      for (const bool recover : {false, true}) {
        const ps::jpeg codec{.limits = {.bytes = 1 << 22}, .recover = recover};
        values first, second;
        const auto outcome = [&](ps::jpeg_scratch& s, values& to) {
          return caught([&] {
                   const auto all = codec.decode(bad, s).finish().values();
                   to.assign(all.begin(), all.end());
                 })
              .line;
        };
        // A scratch that saw damage decodes as a new one does.
        const std::string line = outcome(scratch, first);
        ps::jpeg_scratch other;
        CHECK(line == outcome(other, second));
        CHECK(first == second);
      }
    }
  }
  CHECK(pixels_of(soft_file({70, 50})).size() == 70 * 50 * 3);
}

TEST_CASE("codec/jpeg: nothing is allocated in the steady state") {
  const byte_vector sizes[] = {
      soft_file({200, 150}), soft_file({90, 300}, {.progressive = true}),
      with_orientation(soft_file({100, 80}), 6),
      plain_jpeg::encode({80, 60}, {.factors = std::vector<sampling>(4, sampling{1, 1})})};
  ps::jpeg_scratch scratch;
  values into(200 * 150 * 3);
  const auto round = [&] {
    for (const byte_vector& file : sizes) {
      const auto image = ps::jpeg{}.decode(file, scratch);
      (void)image.read({20, 30, 35, 25});
      image.draw({3, 5, 50, 40}, ps::destination<std::uint8_t>(into.data(), ps::extents(40, 50, 3)));
      image.draw({3, 5, 50, 40}, ps::destination<std::uint8_t>(into.data(), ps::extents(40, 50, 3),
                                                               ps::element_strides{50, 1, 2000}));
      (void)image.finish();
    }
  };
  for (int i = 0; i < 3; ++i) round();
  CHECK(penstock_test::allocations_of(round) == 0);
}

TEST_CASE("codec/jpeg: every allocation fails in turn") {
  for (const bool progressive : {false, true}) {
    const byte_vector file =
        with_orientation(soft_file({130, 90}, {.progressive = progressive}), progressive ? 5 : 1);
    const values whole = pixels_of(file);
    ps::jpeg_scratch scratch;
    values into(40 * 30 * 3);
    const auto failed = penstock_test::fail_each_allocation(
        [&] {
          scratch = ps::jpeg_scratch();
          const auto image = ps::jpeg{}.decode(file, scratch);
          (void)image.read({8, 9, 40, 30});
          image.draw({3, 5, 40, 30}, ps::destination<std::uint8_t>(into.data(), ps::extents(30, 40, 3)));
          (void)image.finish();
        },
        [&](bool) {
          const auto all = ps::jpeg{}.decode(file, scratch).finish().values();
          CHECK(std::equal(all.begin(), all.end(), whole.begin(), whole.end()));
        });
    CHECK(failed >= 4);
  }
}

TEST_CASE("codec/jpeg: in a plan, as an option, and with errors that name the stage") {
  const byte_vector file = soft_file({24, 16});
  const values whole = pixels_of(file);
  const std::vector<byte_vector> files(6, file);
  std::size_t seen = 0;
  for (auto&& b :
       (ps::from(files) | ps::decode<ps::jpeg>(ps::jpeg{.limits = {.width = 100}}) | ps::batch(2)).epoch(0)) {
    values both;
    for (const std::uint8_t value : b.values().flat()) both.push_back(value);
    REQUIRE(both.size() == whole.size() * 2);
    CHECK(std::equal(whole.begin(), whole.end(), both.begin()));
    seen += 2;
  }
  CHECK(seen == 6);
  using sample = ps::record<ps::field<"jpg", byte_vector>, ps::field<"mask", byte_vector>>;
  const std::vector<sample> samples{sample(file, file), sample(file, file)};
  seen = 0;
  for (auto&& b :
       (ps::from(samples) |
        ps::decode<ps::field<"jpg", ps::jpeg>, ps::field<"mask", ps::jpeg_as<ps::gray8>>> | ps::batch(2))
           .epoch(0)) {
    CHECK(ps::get<"jpg">(b).shape() == ps::extents(2, 16, 24, 3));
    CHECK(ps::get<"mask">(b).shape() == ps::extents(2, 16, 24, 1));
    ++seen;
  }
  CHECK(seen == 1);
  const std::vector<byte_vector> bad{file, byte_vector(file.begin(), file.end() - 60)};
  const auto e = caught([&] {
    for (auto&& b : (ps::from(bad) | ps::decode<ps::jpeg> | ps::batch(2)).epoch(0)) (void)b;
  });
  CHECK(e.code == ps::errc::format);
  CHECK(e.line.find("truncated") != std::string::npos);
  CHECK(e.line.find("decode<jpeg>") != std::string::npos);
}

}  // namespace jpeg_test
