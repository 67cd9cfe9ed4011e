// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/image/pixels.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/fixtures.hpp"
#include "support/image_codec_test.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

/// Files of tests/data/image_files and what Pillow makes of them; tools/image_file_oracles.py writes both.
namespace image_files {

namespace ps = penstock;

inline codec_test::byte_vector file(const std::string& name) {
  return codec_test::file_bytes(penstock_test::fixture("image_files/" + name));
}

/// What Pillow makes of a file: NAME.rgba, or gray of 16 bits, NAME.gray16.
template <class T = std::uint8_t>
image_codec_test::picture<T> expected(const std::string& stem) {
  constexpr std::size_t channels = sizeof(T) == 1 ? 4 : 1, head = 8;
  const auto bytes = file(stem + (sizeof(T) == 1 ? ".rgba" : ".gray16"));
  REQUIRE(bytes.size() > head);
  const auto number = [&](std::size_t at, std::size_t count) {
    std::uint32_t value = 0;
    for (std::size_t i = count; i-- > 0;) value = value << 8 | std::to_integer<std::uint32_t>(bytes[at + i]);
    return value;
  };
  image_codec_test::picture<T> made{{number(0, 4), number(4, 4)}, channels, {}};
  for (std::size_t at = head; at < bytes.size(); at += sizeof(T))
    made.values.push_back(static_cast<T>(number(at, sizeof(T))));
  REQUIRE(made.values.size() == std::size_t{made.size.width} * made.size.height * channels);
  return made;
}

/// The files of an ending, without it.
inline std::vector<std::string> stems(std::string_view ending) {
  std::vector<std::string> found;
  for (const auto& one : std::filesystem::directory_iterator(penstock_test::fixture("image_files")))
    if (one.path().extension() == ending) found.push_back(one.path().stem().string());
  std::sort(found.begin(), found.end());
  REQUIRE(!found.empty());
  return found;
}

/// The largest difference of two values.
inline int distance(const image_codec_test::picture<std::uint8_t>& a,
                    const image_codec_test::picture<std::uint8_t>& b) {
  if (a.size != b.size || a.values.size() != b.values.size()) return 256;
  int maximum = 0;
  for (std::size_t i = 0; i < a.values.size(); ++i)
    maximum = std::max(maximum, std::abs(a.values[i] - b.values[i]));
  return maximum;
}

template <class Codec>
image_codec_test::picture<typename ps::decoded<Codec, ps::bytes_view>::value_type> decoded(
    const Codec& codec, const codec_test::byte_vector& bytes) {
  typename Codec::scratch scratch;
  const auto image = codec.decode(bytes, scratch);
  return image_codec_test::copied(image.read(ps::whole_of(image.size())));
}

/// The colours of an RGBA picture, and their luma as Pillow has it.
inline image_codec_test::picture<std::uint8_t> in_rgb(const image_codec_test::picture<std::uint8_t>& rgba) {
  image_codec_test::picture<std::uint8_t> out{rgba.size, 3, {}};
  for (std::size_t i = 0; i < rgba.values.size(); ++i)
    if (i % 4 != 3) out.values.push_back(rgba.values[i]);
  return out;
}
inline image_codec_test::picture<std::uint8_t> in_gray(const image_codec_test::picture<std::uint8_t>& rgba) {
  image_codec_test::picture<std::uint8_t> out{rgba.size, 1, {}};
  for (std::size_t i = 0; i < rgba.values.size(); i += 4)
    out.values.push_back(static_cast<std::uint8_t>(
        (rgba.values[i] * 19595u + rgba.values[i + 1] * 38470u + rgba.values[i + 2] * 7471u + 0x8000u) >>
        16));
  return out;
}

/// Every part, format and cut of a file is what the whole is, or an error; `whole`: what the codec made of it
/// as RGBA. `Codec<Format>` is the codec.
template <template <class> class Codec>
void check_all(const codec_test::byte_vector& bytes, const Codec<ps::rgba8>& codec,
               const image_codec_test::picture<std::uint8_t>& whole, std::uint64_t seed) {
  typename Codec<ps::rgba8>::scratch scratch;
  image_codec_test::check_parts(codec.decode(bytes, scratch), whole, seed, 8);
  Codec<ps::rgb8> rgb;
  Codec<ps::gray8> gray;
  if constexpr (requires { codec.first_frame; }) rgb.first_frame = gray.first_frame = codec.first_frame;
  image_codec_test::check_parts(rgb.decode(bytes, scratch), in_rgb(whole), seed, 4);
  image_codec_test::check_parts(gray.decode(bytes, scratch), in_gray(whole), seed, 4);
  const auto limited = [&](const ps::image_limits& limits) {
    auto small = codec;
    small.limits = limits;
    return codec_test::caught([&] { static_cast<void>(small.decode(bytes, scratch)); }).code;
  };
  const ps::image_size stored = codec.decode(bytes, scratch).size();
  CHECK(limited({.width = std::min(stored.width, stored.height) - 1}) == ps::errc::limit);
  CHECK(limited({.height = std::min(stored.width, stored.height) - 1}) == ps::errc::limit);
  CHECK(limited({.bytes = std::uint64_t{stored.width} * stored.height * 4 - 1}) == ps::errc::limit);
}

/// Cut at any place and changed in any byte, a file is an error of the right kind, or an image of its size.
template <class Codec>
void check_damage(const codec_test::byte_vector& good, const Codec& codec, std::size_t step) {
  typename Codec::scratch scratch;
  const auto try_it = [&](const codec_test::byte_vector& bytes) {
    auto small = codec;
    small.limits = {.width = 4096, .height = 4096, .bytes = 1 << 24};
    const auto found = codec_test::caught([&] { static_cast<void>(small.decode(bytes, scratch).finish()); });
    if (!found.line.empty()) CHECK((found.code == ps::errc::format || found.code == ps::errc::limit));
    return found.line.empty();
  };
  REQUIRE(try_it(good));
  for (std::size_t size = 0; size < good.size(); size += step)
    (void)try_it({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)});
  CHECK_FALSE(try_it({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(good.size() / 2)}));
  for (std::size_t at = 0; at < good.size(); at += step)
    for (const int flip : {0x01, 0x80, 0xff}) {
      auto bad = good;
      bad[at] ^= static_cast<std::byte>(flip);
      (void)try_it(bad);
    }
}

}  // namespace image_files
