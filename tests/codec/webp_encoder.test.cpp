// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/webp.hpp>
#include <penstock/codec/webp_encoder.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/image_codec_test.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>

namespace ps = penstock;
using codec_test::byte_vector;
using codec_test::caught;
using codec_test::to_vector;
using image_codec_test::copied;
using penstock_test::contains;
using picture = image_codec_test::picture<std::uint8_t>;

namespace webp_encoder_test {

template <class Format>
picture decoded(const byte_vector& file) {
  ps::webp_scratch scratch;
  const auto image = ps::webp_as<Format>{}.decode(file, scratch);
  return copied(image.read(ps::whole_of(image.size())));
}

}  // namespace webp_encoder_test
using webp_encoder_test::decoded;

TEST_CASE("codec/webp_encoder: writes gray, pitched rows and refuses what is no image") {
  ps::webp_encoder encoder;
  const picture gray = image_codec_test::some_picture<std::uint8_t>({21, 13}, 1, 4);
  CHECK(decoded<ps::gray8>(to_vector(encoder.encode(gray.view<1>(), {.lossless = true}))) == gray);
  const picture wide = image_codec_test::some_picture<std::uint8_t>({40, 30}, 3, 5);
  const ps::image_part part{3, 4, 21, 17};
  const byte_vector file = to_vector(encoder.encode(wide.view<3>().part(part), {.lossless = true}));
  CHECK(decoded<ps::rgb8>(file) == wide.part(part));
  CHECK(to_vector(encoder.encode(wide.view<3>().part(part), {.lossless = true})) == file);
  const auto refused = [&](ps::image_size size, const ps::webp_options& options) {
    return caught([&] {
      static_cast<void>(encoder.encode(ps::pixel_view<std::uint8_t, 3>(wide.values.data(), size), options));
    });
  };
  CHECK_THAT(refused({0, 3}, {}).line, contains("0 x 3"));
  CHECK_THAT(refused({16'384, 1}, {}).line, contains("16383"));
  CHECK_THAT(refused({1, 1}, {.quality = 101}).line, contains("quality"));
  CHECK_THAT(refused({1, 1}, {.quality = -0.5f}).line, contains("quality"));
  CHECK(refused({1, 1}, {.quality = std::numeric_limits<float>::quiet_NaN()}).code == ps::errc::argument);
  CHECK_THAT(refused({1, 1}, {.method = 7}).line, contains("method 7"));
  CHECK(refused({1, 1}, {.method = -1}).code == ps::errc::argument);
}
