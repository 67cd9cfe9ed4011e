// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/image/orientation.hpp>

#include "support/catch.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace orientation_test {

namespace ps = penstock;

namespace {

/// A TIFF header with one directory: this tag, type and value.
std::vector<std::byte> tiff(bool little, unsigned tag, unsigned type, unsigned value) {
  std::vector<std::byte> made;
  const auto put = [&](unsigned number, int bytes) {
    for (int i = 0; i < bytes; ++i)
      made.push_back(static_cast<std::byte>(number >> (little ? 8 * i : 8 * (bytes - 1 - i)) & 0xff));
  };
  for (int i = 0; i < 2; ++i) made.push_back(static_cast<std::byte>(little ? 'I' : 'M'));
  put(42, 2);
  put(8, 4);
  put(2, 2);  // entries
  for (const unsigned number : {256u, tag}) {
    put(number, 2);
    put(number == tag ? type : 4, 2);
    put(1, 4);
    if (number == tag && type == 3) {
      put(value, 2);
      put(0, 2);
    } else {
      put(value, 4);
    }
  }
  put(0, 4);
  return made;
}

/// Where EXIF says that the stored pixel (x, y) is shown.
std::array<std::uint32_t, 2> shown_place(unsigned orientation, std::uint32_t x, std::uint32_t y,
                                         const ps::image_size& stored) {
  const std::uint32_t right = stored.width - 1 - x, below = stored.height - 1 - y;
  switch (orientation) {
    case 2:
      return {right, y};
    case 3:
      return {right, below};
    case 4:
      return {x, below};
    case 5:
      return {y, x};
    case 6:
      return {below, x};
    case 7:
      return {below, right};
    case 8:
      return {y, right};
    default:
      return {x, y};
  }
}

}  // namespace

TEST_CASE("image/orientation: a stored image is shown as EXIF says, whole and in parts") {
  const ps::image_size stored{5, 3};
  std::vector<std::uint8_t> values(5 * 3 * 3);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint8_t>(i * 5);
  const ps::pixel_view<std::uint8_t, 3> pixels(values.data(), stored);
  for (unsigned number = 1; number <= 8; ++number) {
    const auto turned = static_cast<ps::orientation>(number);
    const ps::image_size shown = ps::oriented(stored, turned);
    CHECK(ps::turns_sideways(turned) == (number >= 5));
    std::vector<std::uint8_t> expected(values.size());
    for (std::uint32_t y = 0; y < stored.height; ++y)
      for (std::uint32_t x = 0; x < stored.width; ++x) {
        const auto [sx, sy] = shown_place(number, x, y, stored);
        for (std::size_t c = 0; c < 3; ++c)
          expected[(std::size_t{sy} * shown.width + sx) * 3 + c] = pixels.at(x, y)[c];
      }
    std::vector<std::uint8_t> all(values.size());
    ps::orient_pixels(pixels, turned,
                      ps::destination<std::uint8_t>(
                          all.data(), ps::extents(std::size_t{shown.height}, std::size_t{shown.width}, 3)));
    CHECK(all == expected);
    // Planes, and every part.
    std::vector<std::uint8_t> planes(values.size());
    const auto plane = static_cast<std::int64_t>(shown.width) * shown.height;
    ps::orient_pixels(pixels, turned,
                      ps::destination<std::uint8_t>(
                          planes.data(), ps::extents(std::size_t{shown.height}, std::size_t{shown.width}, 3),
                          {static_cast<std::int64_t>(shown.width), 1, plane}));
    for (std::size_t i = 0; i < static_cast<std::size_t>(plane); ++i)
      for (std::size_t c = 0; c < 3; ++c)
        REQUIRE(planes[c * static_cast<std::size_t>(plane) + i] == expected[i * 3 + c]);
    for (std::uint32_t y = 0; y < shown.height; ++y)
      for (std::uint32_t x = 0; x < shown.width; ++x) {
        const ps::image_part part{x, y, shown.width - x, 1};
        const ps::image_part from = ps::stored_part(part, stored, turned);
        REQUIRE(from.within(stored));
        std::vector<std::uint8_t> some(std::size_t{part.width} * 3);
        ps::orient_pixels(
            pixels.part(from), turned,
            ps::destination<std::uint8_t>(some.data(), ps::extents(1, std::size_t{part.width}, 3)));
        for (std::size_t i = 0; i < some.size(); ++i)
          REQUIRE(some[i] == expected[(std::size_t{y} * shown.width + x) * 3 + i]);
      }
  }
}

TEST_CASE("image/orientation: the tag is read in both orders of bytes") {
  for (const bool little : {true, false})
    for (unsigned value = 1; value <= 8; ++value) {
      CHECK(ps::exif_orientation(tiff(little, 0x0112, 3, value)) == static_cast<ps::orientation>(value));
      CHECK(ps::exif_orientation(tiff(little, 0x0112, 4, value)) == static_cast<ps::orientation>(value));
    }
}

TEST_CASE("image/orientation: XMP has it as an attribute or an element") {
  CHECK(ps::xmp_orientation("<r tiff:Orientation=\"6\"/>") == ps::orientation::rotated_90);
  CHECK(ps::xmp_orientation("<r tiff:Orientation='8'/>") == ps::orientation::rotated_270);
  CHECK(ps::xmp_orientation("<tiff:Orientation>3</tiff:Orientation>") == ps::orientation::rotated_180);
  CHECK(ps::xmp_orientation("tiff:OrientationX tiff:Orientation>2") == ps::orientation::mirrored);
  for (const char* none :
       {"", "tiff:Orientation", "tiff:Orientation=", "tiff:Orientation=\"", "tiff:Orientation>x",
        "tiff:Orientation>0", "tiff:Orientation>9", "Orientation=\"6\""})
    CHECK(ps::xmp_orientation(none) == ps::orientation::upright);
}

TEST_CASE("image/orientation: EXIF's tag counts before XMP, even if its value is none") {
  const auto found = [](unsigned tag, unsigned value, std::string_view xmp) {
    ps::metadata_orientation turn;
    turn.xmp(xmp);
    turn.exif(tiff(true, tag, 3, value));
    return turn.found();
  };
  CHECK(found(0x0112, 6, "tiff:Orientation>3") == ps::orientation::rotated_90);
  CHECK(found(0x0112, 9, "tiff:Orientation>3") == ps::orientation::upright);
  CHECK(found(0x0110, 6, "tiff:Orientation>3") == ps::orientation::rotated_180);
  CHECK(ps::metadata_orientation{}.found() == ps::orientation::upright);
}

TEST_CASE("image/orientation: what cannot be read is upright") {
  CHECK(ps::exif_orientation({}) == ps::orientation::upright);
  CHECK(ps::exif_orientation(tiff(true, 0x0112, 3, 0)) == ps::orientation::upright);
  CHECK(ps::exif_orientation(tiff(true, 0x0112, 3, 9)) == ps::orientation::upright);
  CHECK(ps::exif_orientation(tiff(true, 0x0112, 2, 6)) == ps::orientation::upright);
  CHECK(ps::exif_orientation(tiff(true, 0x0110, 3, 6)) == ps::orientation::upright);
  const auto good = tiff(false, 0x0112, 3, 6);
  for (std::size_t size = 0; size < good.size(); ++size) {
    const ps::orientation found = ps::exif_orientation(ps::bytes_view(good).first(size));
    CHECK((found == ps::orientation::upright || found == ps::orientation::rotated_90));
  }
  for (std::size_t at = 0; at < good.size(); ++at)
    for (const int flip : {0x01, 0x80, 0xff}) {
      auto bad = good;
      bad[at] ^= static_cast<std::byte>(flip);
      (void)ps::exif_orientation(bad);  // within its bytes, whatever they are
    }
  for (const char* other : {"XX*", "MMxx", "II*\0"}) {
    auto bad = good;
    for (std::size_t i = 0; other[i] != 0; ++i) bad[i] = static_cast<std::byte>(other[i]);
    CHECK(ps::exif_orientation(bad) == ps::orientation::upright);
  }
}

}  // namespace orientation_test
