// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/image_of.hpp>
#include <penstock/codec/npy_image.hpp>
#include <penstock/codec/png.hpp>
#include <penstock/codec/png_encoder.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/count_allocations.hpp"
#include "support/image_codec_test.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;
using codec_test::byte_vector;
using codec_test::caught;
using codec_test::to_vector;
using penstock_test::contains;

using mixed = ps::image_of<ps::png, ps::npy_image>;
static_assert(ps::image_codec<ps::npy_image> && ps::extension_codec<ps::npy_image>);
static_assert(ps::image_codec<mixed> && ps::codec<ps::npy_image_as<ps::gray16>>);

namespace npy_image_test {

template <class T>
byte_vector file_of(const image_codec_test::picture<T>& pixels, bool flat = false) {
  const std::size_t h = pixels.size.height, w = pixels.size.width;
  return ps::npy_bytes<T>(flat ? ps::extents(h, w) : ps::extents(h, w, pixels.channels), pixels.values);
}

template <class Format>
void check(std::uint64_t seed) {
  using value = typename Format::value_type;
  for (const ps::image_size size : {ps::image_size{1, 1}, {1, 7}, {7, 1}, {19, 23}})
    for (const bool flat : {false, true})
      for (const std::size_t shift : {0u, 1u}) {  // bytes at odd addresses
        if (flat && Format::channels != 1) continue;
        CAPTURE(Format::format_name, size.width, size.height, flat, shift);
        const auto expected = image_codec_test::some_picture<value>(size, Format::channels, ++seed);
        const byte_vector file = file_of(expected, flat);
        byte_vector bytes(file.size() + shift);
        std::memcpy(bytes.data() + shift, file.data(), file.size());
        ps::image_scratch scratch;
        const auto image = ps::npy_image_as<Format>{}.decode(ps::bytes_view(bytes).subspan(shift), scratch);
        image_codec_test::check_parts(image, expected, seed);
      }
}

/// A file with any header and `payload` bytes after it.
byte_vector made(std::string_view dict, std::size_t payload) {
  std::string file("\x93NUMPY\1\0", 8);
  file += static_cast<char>(dict.size());
  file += '\0';
  file += dict;
  file.append(payload, 'x');
  return to_vector(std::string_view(file));
}
byte_vector shaped(const std::string& shape, std::size_t payload, const std::string& dtype = "|u1",
                   const std::string& fortran = "False") {
  return made("{'descr': '" + dtype + "', 'fortran_order': " + fortran + ", 'shape': " + shape + "}",
              payload);
}

template <class Format = ps::rgb8>
codec_test::thrown refusal(const byte_vector& file, const ps::image_limits& limits = {}) {
  ps::image_scratch scratch;
  return caught(
      [&] { static_cast<void>(ps::npy_image_as<Format>{.limits = limits}.decode(file, scratch).finish()); });
}

}  // namespace npy_image_test

TEST_CASE("codec/npy_image: every format, in every part and layout") {
  using namespace npy_image_test;
  check<ps::gray8>(1);
  check<ps::rgb8>(2);
  check<ps::rgba8>(3);
  check<ps::gray16>(4);
  check<ps::rgb16>(5);
  check<ps::rgba16>(6);
}

TEST_CASE("codec/npy_image: what is no image is one clear error") {
  using namespace npy_image_test;
  CHECK(refusal(shaped("(2, 3, 3)", 18)).line.empty());
  CHECK(refusal<ps::gray8>(shaped("(2, 3)", 6)).line.empty());
  struct wrong {
    std::string shape;
    std::size_t payload;
  };
  for (const wrong& w : {wrong{"(2, 3)", 6},
                         {"(18,)", 18},
                         {"()", 1},
                         {"(2, 3, 1)", 6},
                         {"(2, 3, 4)", 24},
                         {"(1, 2, 3, 3)", 18}}) {
    CAPTURE(w.shape);
    const auto error = refusal(shaped(w.shape, w.payload));
    CHECK(error.code == ps::errc::shape);
    CHECK_THAT(error.line, contains("shape " + w.shape) && contains("(height, width, 3)"));
  }
  CHECK_THAT(refusal<ps::gray8>(shaped("(2, 3, 3)", 18)).line,
             contains("(height, width, 1) or (height, width)"));
  CHECK(refusal(shaped("(2, 3, 3)", 17)).code == ps::errc::format);
  CHECK(refusal(shaped("(2, 3, 3)", 19)).code == ps::errc::format);
  CHECK(refusal(shaped("(2, 0, 3)", 0)).code == ps::errc::format);
  CHECK_THAT(refusal(shaped("(0, 2, 3)", 0)).line, contains("has no pixels: it is 2 x 0"));
  CHECK_THAT(refusal(shaped("(2, 3, 3)", 72, "<f4")).line, contains("dtype '<f4'"));
  CHECK_THAT(refusal(shaped("(2, 3, 3)", 18, "|i1")).line, contains("dtype '|i1'"));
  CHECK_THAT(refusal(shaped("(2, 3, 3)", 18, "|u1", "True")).line, contains("Fortran order"));
  CHECK_THAT(refusal(to_vector("GIF89a........")).line, contains("not an npy file"));
  const std::string foreign = std::endian::native == std::endian::little ? ">u2" : "<u2";
  CHECK_THAT(refusal<ps::gray16>(shaped("(2, 3)", 12, foreign)).line,
             contains("order of bytes") && contains("astype('u2')"));
}

TEST_CASE("codec/npy_image: sizes beyond the limits are refused") {
  using namespace npy_image_test;
  const byte_vector file = shaped("(4, 5, 3)", 60);
  CHECK(refusal(file, {.width = 5, .height = 4, .bytes = 60}).line.empty());
  CHECK(refusal(file, {.width = 4}).code == ps::errc::limit);
  CHECK(refusal(file, {.height = 3}).code == ps::errc::limit);
  CHECK(refusal(file, {.bytes = 59}).code == ps::errc::limit);
  // No bytes follow these headers, and a size that is cut to 32 bits would look like a small one.
  CHECK(refusal(shaped("(4294967297, 0, 3)", 0), {.height = 0xffff'ffff}).code == ps::errc::limit);
  CHECK(refusal(shaped("(0, 4294967297, 3)", 0), {.width = 0xffff'ffff}).code == ps::errc::limit);
  CHECK(refusal(shaped("(4611686018427387904, 4611686018427387904, 3)", 0)).code == ps::errc::format);
}

TEST_CASE("codec/npy_image: files that are cut and changed are refused, or are within their bytes") {
  using namespace npy_image_test;
  const byte_vector file = file_of(image_codec_test::some_picture<std::uint8_t>({5, 4}, 3, 1));
  for (std::size_t n = 0; n < file.size(); ++n)
    CHECK(refusal(byte_vector(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(n))).code ==
          ps::errc::format);
  ps::image_scratch scratch;
  for (std::size_t i = 0; i < 128; ++i)
    for (int bit = 0; bit < 8; ++bit) {
      byte_vector changed = file;
      changed[i] ^= static_cast<std::byte>(1 << bit);
      try {
        const auto image = ps::npy_image{}.decode(changed, scratch);
        const ps::image_size size = image.size();
        CHECK(std::size_t{size.width} * size.height * 3 <= file.size() - 10);
        static_cast<void>(image.finish());
      } catch (const ps::error&) {
      }
    }
}

TEST_CASE("codec/npy_image: raw and compressed images in one dataset; crops of raw ones are views") {
  using namespace npy_image_test;
  const auto pixels = image_codec_test::some_picture<std::uint8_t>({31, 17}, 3, 8);
  ps::png_encoder png;
  const byte_vector files[] = {to_vector(png.encode(pixels.view<3>())), file_of(pixels)};
  mixed::scratch scratch;
  for (int round = 0; round < 2; ++round)
    for (const std::size_t i : {0u, 1u}) {
      const auto image = mixed{}.decode(files[i], scratch);
      CHECK(image.index() == i);
      image_codec_test::check_parts(image, pixels, 1);
    }
  const auto crop = mixed{}.decode(files[1], scratch).read({3, 4, 5, 6});
  CHECK(static_cast<const void*>(crop.data()) ==
        files[1].data() + (files[1].size() - pixels.values.size()) + (4 * 31 + 3) * 3);
  CHECK(penstock_test::allocations_of(
            [&] { static_cast<void>(mixed{}.decode(files[1], scratch).finish()); }) == 0);
  CHECK_THAT(
      caught([&] {
        static_cast<void>(mixed{}.decode(ps::bytes_view(files[1]).first(files[1].size() - 1), scratch));
      }).line,
      contains("[stage decode<npy_image>"));
}
