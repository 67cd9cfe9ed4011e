// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/device/image/image_values.hpp>

#include "support/catch.hpp"

#include <penstock/core/error.hpp>
#include <penstock/core/half.hpp>

#include <bit>
#include <cmath>
#include <cstdint>

namespace device_image_image_values_test {

namespace ps = penstock;
using penstock_test::contains;
using ps::detail::image_values;

namespace {

ps::image_work written(const image_values& values, ps::image_number number) {
  ps::image_work work;
  work.number = number;
  values.write(work);
  return work;
}
float fill_of(const ps::image_work& work, std::size_t c) { return std::bit_cast<float>(work.fill[c]); }
bool close(double a, double b) { return std::fabs(a - b) <= 1e-6 * (1 + std::fabs(b)); }

}  // namespace

TEST_CASE("device/image/image_values: shifts and scales of several operations are one") {
  image_values values(3);
  values.normalize(ps::imagenet);
  values.normalize(ps::channel_statistics<1>{{0.5}, {2.0}});
  const ps::image_work work = written(values, ps::image_number::float32);
  for (std::size_t c = 0; c < 3; ++c)
    for (const float byte : {0.0f, 17.0f, 255.0f}) {
      const double once = (byte / 255.0 - ps::imagenet.mean[c]) / ps::imagenet.std[c];
      CHECK(close((byte - work.shift[c]) * work.scale[c], (once - 0.5) / 2));
    }
}

TEST_CASE("device/image/image_values: a colour becomes what pixels of that colour become") {
  image_values before(2);
  before.fill({51, 255});
  before.scale_to_one();
  before.scale_to_one();  // real numbers stay as they are
  before.normalize(ps::channel_statistics<1>{{0.2}, {0.5}});
  const ps::image_work work = written(before, ps::image_number::float32);
  CHECK(fill_of(work, 0) == (51 - work.shift[0]) * work.scale[0]);
  CHECK(fill_of(work, 1) == (255 - work.shift[1]) * work.scale[1]);
  CHECK(written(before, ps::image_number::float16).fill[1] == ps::half(fill_of(work, 1)).bits());
  CHECK(written(before, ps::image_number::brain16).fill[1] == ps::bfloat16(fill_of(work, 1)).bits());

  image_values between(1);
  between.scale_to_one();
  between.fill(0.75);
  between.normalize(ps::channel_statistics<1>{{0.25}, {0.5}});
  CHECK(fill_of(written(between, ps::image_number::float32), 0) == 1.0f);

  image_values bytes(4);
  bytes.fill(7);
  bytes.fill({7, 7, 7, 7});  // the same colour
  CHECK(written(bytes, ps::image_number::bytes).fill[3] == 7);
  CHECK_THROWS_WITH(bytes.fill(8), contains("different colours"));
  CHECK_THROWS_AS(image_values(3).fill({1, 2}), ps::error);
  CHECK_THROWS_AS(image_values(1).fill(0.5), ps::error);  // no value of bytes
}

}  // namespace device_image_image_values_test
