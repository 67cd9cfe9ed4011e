// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// jpeg{.dct_scaling = true}: images that a resize makes smaller are decoded smaller.

#include <penstock/codec/image_of.hpp>
#include <penstock/codec/jpeg.hpp>
#include <penstock/codec/jpeg_encoder.hpp>
#include <penstock/codec/png.hpp>
#include <penstock/codec/png_encoder.hpp>
#include <penstock/image/crop.hpp>
#include <penstock/image/random_resized_crop.hpp>
#include <penstock/image/resize.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/count_allocations.hpp"
#include "support/image_codec_test.hpp"
#include "support/plain_jpeg.hpp"
#include "support/test_data.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;
using codec_test::byte_vector;
using image_codec_test::copied;
using image_codec_test::picture;

namespace {

constexpr ps::jpeg scaling{.dct_scaling = true};

byte_vector with_orientation(const byte_vector& file, unsigned o) {
  std::string block("Exif\0\0MM\0*\0\0\0\x08\0\1\x01\x12\0\3\0\0\0\1\0\0\0\0\0\0\0\0", 32);
  block[6 + 8 + 2 + 9] = static_cast<char>(o);
  const std::string head = std::string("\xff\xe1\0\x22", 4) + block;
  byte_vector all(file.begin(), file.begin() + 2);
  for (const char c : head) all.push_back(static_cast<std::byte>(c));
  all.insert(all.end(), file.begin() + 2, file.end());
  return all;
}

/// Waves of different lengths in each channel: a picture without noise.
byte_vector smooth_file(ps::image_size size, unsigned o = 1) {
  std::vector<std::uint8_t> pixels;
  for (std::uint32_t y = 0; y < size.height; ++y)
    for (std::uint32_t x = 0; x < size.width; ++x)
      for (int c = 0; c < 3; ++c)
        pixels.push_back(static_cast<std::uint8_t>(128 + 60 * std::sin(x * (0.03 + 0.02 * c) + 1) +
                                                   60 * std::cos(y * (0.05 - 0.01 * c) + c)));
  ps::jpeg_encoder encoder;
  const ps::pixel_view<std::uint8_t, 3> view(pixels.data(), size);
  return with_orientation(codec_test::to_vector(encoder.encode(view, {.quality = 95})), o);
}

struct distance {
  double mean = 0;
  int maximum = 0;
};
distance between(const picture<std::uint8_t>& a, const picture<std::uint8_t>& b) {
  REQUIRE(a.size == b.size);
  distance d;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    const int apart = std::abs(int{a.values[i]} - int{b.values[i]});
    d.mean += apart;
    d.maximum = std::max(d.maximum, apart);
  }
  d.mean /= static_cast<double>(a.values.size());
  return d;
}

struct operation_call {
  ps::image_scratch scratch;
  ps::call<ps::image_scratch> call;
  explicit operation_call(std::uint64_t index = 0) : call{{0, index}, 0, 5, 1, scratch} {}
};

/// What an operation makes of a file.
template <class Codec, class Operation>
picture<std::uint8_t> made(const Codec& codec, const byte_vector& file, const Operation& operation,
                           std::uint64_t index = 0) {
  typename Codec::scratch scratch;
  operation_call c(index);
  const auto image = operation(codec.decode(file, scratch), c.call);
  return copied(image.read(ps::whole_of(image.size())));
}

}  // namespace

TEST_CASE("codec/dct_scaling: a smaller image is the library's own, and its parts are parts of it") {
  const std::vector<plain_jpeg::kind> kinds = {
      {.factors = {{1, 1}}},
      {.factors = {{2, 2}}},
      {.factors = {{1, 1}, {1, 1}, {1, 1}}},
      {.factors = {{2, 1}, {1, 1}, {1, 1}}},
      {.factors = {{1, 2}, {1, 1}, {1, 1}}},
      {.factors = {{2, 2}, {1, 1}, {1, 1}}},
      {.factors = {{4, 1}, {1, 1}, {1, 1}}},
      {.factors = {{1, 4}, {1, 1}, {1, 1}}},
      {.factors = {{4, 1}, {1, 1}, {2, 1}}},
      {.factors = {{4, 2}, {1, 1}, {1, 1}}},
      {.factors = {{2, 4}, {1, 1}, {1, 1}}},
      {.factors = {{4, 2}, {1, 1}, {1, 1}}, .progressive = true},
      {.factors = {{2, 2}, {2, 1}, {1, 2}}},
      {.factors = {{2, 2}, {1, 1}, {1, 1}}, .progressive = true},
      {.factors = {{2, 1}, {1, 1}, {1, 1}}, .separate = true},
      {.factors = {{1, 1}, {1, 1}, {1, 1}, {1, 1}}, .rgb = true},
      {.factors = {{2, 2}, {1, 1}, {1, 1}, {2, 2}}, .rgb = true, .restart = 3}};
  ps::jpeg_scratch scratch;
  ps::rng random(1, 0, 0);
  for (const plain_jpeg::kind& kind : kinds)
    for (const ps::image_size size :
         {ps::image_size{150, 117}, ps::image_size{64, 48}, ps::image_size{9, 7}}) {
      const byte_vector file = plain_jpeg::encode(size, kind);
      REQUIRE(!file.empty());
      for (unsigned times = 1; times <= 3; ++times) {
        INFO(kind.factors.size() << " channels, " << kind.factors[0].h << " x " << kind.factors[0].v << ", "
                                 << size.width << " x " << size.height << ", halved " << times);
        const auto plain = plain_jpeg::decode(file, 3, 1u << times);
        REQUIRE(plain);
        ps::real_part where{8, 4, 1, 2};
        const auto image = scaling.decode(file, scratch).halved(times, where);
        const double scale = 1.0 / (1u << times);
        CHECK(where == ps::real_part{8 * scale, 4 * scale, scale, 2 * scale});
        REQUIRE(image.size() == plain->size);
        CHECK(image.max_halvings() == 3 - times);
        const picture<std::uint8_t> whole{plain->size, 3, plain->pixels};
        CHECK(copied(image.read(ps::whole_of(image.size()))) == whole);
        for (int i = 0; i < 12; ++i) {
          const ps::image_part part = image_codec_test::some_part(image.size(), random);
          CAPTURE(part.x, part.y, part.width, part.height);
          CHECK(copied(image.read(part)) == whole.part(part));
        }
        // Again at its full size.
        CHECK(copied(scaling.decode(file, scratch).read(ps::whole_of(size))).values ==
              plain_jpeg::decode(file, 3)->pixels);
      }
    }
}

TEST_CASE("codec/dct_scaling: the resized rectangle stays where it is, however the image is turned") {
  for (const ps::image_size size : {ps::image_size{321, 242}, ps::image_size{250, 399}})
    for (unsigned o = 1; o <= 8; ++o) {
      const byte_vector file = smooth_file(size, o);
      INFO(size.width << " x " << size.height << ", orientation " << o);
      for (const ps::image_size to : {ps::image_size{100, 90}, {50, 50}, {31, 30}, {17, 25}}) {
        const auto operation = ps::resize(to.height, to.width);
        const distance d = between(made(ps::jpeg{}, file, operation), made(scaling, file, operation));
        CHECK(d.mean < 1.2);
        CHECK(d.maximum < 9);
        CHECK(d.mean > 0);  // another way
      }
      for (std::uint64_t i = 0; i < 12; ++i) {
        const auto operation = ps::random_resized_crop(24);
        const distance d = between(made(ps::jpeg{}, file, operation, i), made(scaling, file, operation, i));
        INFO("crop " << i);
        CHECK(d.mean < 1.2);
        CHECK(d.maximum < 9);
      }
    }
}

TEST_CASE(
    "codec/dct_scaling: nothing changes without the option, nor where the result is not smaller by half") {
  const byte_vector file = smooth_file({200, 150});
  ps::jpeg_scratch scratch;
  CHECK(ps::jpeg{}.decode(file, scratch).max_halvings() == 0);
  CHECK(scaling.decode(file, scratch).max_halvings() == 3);
  const auto equal = [&](const auto& operation) {
    return made(ps::jpeg{}, file, operation) == made(scaling, file, operation);
  };
  CHECK(equal(ps::resize(76, 100)));
  CHECK(equal(ps::resize(75, 101)));
  CHECK_FALSE(equal(ps::resize(75, 100)));
  CHECK(equal(ps::resize(300, 400)));
  CHECK(equal(ps::resize(20, 300)));
  CHECK(equal(ps::resize(20, 20, {.how = ps::interpolation::nearest})));
  CHECK(equal(ps::resize(20, 20, {.antialias = false})));
  CHECK(equal(ps::resize(20, 20, {.how = ps::interpolation::bicubic, .antialias = false})));
  CHECK_FALSE(equal(ps::resize(20, 20, {.how = ps::interpolation::area, .antialias = false})));
  CHECK_FALSE(equal(ps::resize(20, 20, {.how = ps::interpolation::bicubic})));
  CHECK(equal(ps::crop(3, 5, 40, 30)));
  // Exactly half: the decoder's own pixels.
  CHECK(made(scaling, file, ps::resize(75, 100)).values == plain_jpeg::decode(file, 3, 2)->pixels);
  CHECK(made(scaling, file, ps::resize(37, 50)).size == ps::image_size{50, 37});
}

TEST_CASE("codec/dct_scaling: within image_of, for those of its codecs that can") {
  using both = ps::image_of<ps::png, ps::jpeg>;
  const both codec(ps::png{}, scaling);
  const byte_vector file = smooth_file({200, 150});
  const auto operation = ps::random_resized_crop(20);
  CHECK(made(codec, file, operation, 3) == made(scaling, file, operation, 3));
  CHECK(made(both{}, file, operation, 3) == made(ps::jpeg{}, file, operation, 3));
  const auto pixels = image_codec_test::some_picture<std::uint8_t>({64, 48}, 3, 8);
  ps::png_encoder encoder;
  const byte_vector png = codec_test::to_vector(encoder.encode(pixels.view<3>()));
  CHECK(made(codec, png, operation, 3) == made(ps::png{}, png, operation, 3));
}

TEST_CASE("codec/dct_scaling: photos, on any number of workers, without an allocation") {
  const auto folder = penstock_test::test_data("photos");
  if (!folder) {
    WARN("PENSTOCK_TEST_DATA has no folder photos: nothing is tested");
    return;
  }
  std::vector<std::filesystem::path> names;
  for (const auto& entry : std::filesystem::directory_iterator(*folder)) names.push_back(entry.path());
  std::sort(names.begin(), names.end());
  std::vector<byte_vector> files;
  for (std::size_t i = 0; i < names.size() && files.size() < 24; i += 5) {
    std::ifstream in(names[i], std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    if (!ps::jpeg::recognises(ps::as_bytes(std::string_view(bytes)))) continue;
    files.emplace_back();
    for (const char c : bytes) files.back().push_back(static_cast<std::byte>(c));
  }
  REQUIRE(files.size() > 10);
  double mean = 0;
  std::size_t number = 0, scaled = 0;
  for (const byte_vector& file : files)
    for (const std::uint32_t side : {32u, 64u, 112u}) {
      const auto operation = ps::random_resized_crop(side, {.scale = {0.5, 1}});
      const distance d =
          between(made(ps::jpeg{}, file, operation, number), made(scaling, file, operation, number));
      ++number;
      mean += d.mean;
      scaled += d.maximum != 0;
      CHECK(d.mean < 5);
    }
  CHECK(mean / static_cast<double>(number) < 3);
  CHECK(scaled > number / 2);

  const auto plan = ps::from(files) | ps::decode<ps::jpeg>(scaling) |
                    ps::map(ps::random_resized_crop(48), ps::key("crop")) | ps::batch(4);
  std::vector<std::uint8_t> first;
  for (const unsigned workers : {0u, 1u, 3u}) {
    std::vector<std::uint8_t> all;
    auto run = (plan | ps::workers(workers)).open();
    for (auto&& b : run.epoch(0))
      for (const auto& image : b.values()) all.insert(all.end(), image.data(), image.data() + image.size());
    if (workers == 0) first = all;
    CHECK(all.size() == files.size() * 48 * 48 * 3);
    CHECK(all == first);
  }

  ps::jpeg_scratch scratch;
  operation_call c;
  const auto operation = ps::resize(50, 40);
  const auto decode_all = [&] {
    for (const byte_vector& file : files) (void)operation(scaling.decode(file, scratch), c.call).finish();
  };
  decode_all();
  decode_all();
  CHECK(penstock_test::allocations_of(decode_all) == 0);
}
