// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/image/pixels.hpp>

#include "support/catch.hpp"

#include <cstdint>
#include <vector>

namespace pixels_test {

namespace ps = penstock;

TEST_CASE("image/pixels: formats say their numbers of channels") {
  STATIC_REQUIRE(ps::pixel_format<ps::gray8>);
  STATIC_REQUIRE(ps::pixel_format<ps::rgb16>);
  STATIC_REQUIRE_FALSE(ps::pixel_format<int>);
  STATIC_REQUIRE(ps::gray8::channels + ps::rgb8::channels + ps::rgba8::channels == 8);
  STATIC_REQUIRE(sizeof(ps::gray16::value_type) == 2);
  CHECK(ps::rgba16::format_name == "rgba16");
}

TEST_CASE("image/pixels: a part is within an image, or is not") {
  constexpr ps::image_size size{10, 5};
  CHECK(ps::whole_of(size).within(size));
  CHECK(ps::whole_of(size) == ps::image_part{0, 0, 10, 5});
  CHECK(ps::image_part{9, 4, 1, 1}.within(size));
  CHECK(ps::image_part{10, 5, 0, 0}.within(size));
  CHECK_FALSE(ps::image_part{9, 0, 2, 1}.within(size));
  CHECK_FALSE(ps::image_part{0, 4, 1, 2}.within(size));
  CHECK_FALSE(ps::image_part{0xffffffff, 0, 1, 1}.within(size));  // the sum is beyond 32 bits
  CHECK(ps::image_part{1, 2, 3, 4}.size() == ps::image_size{3, 4});
}

TEST_CASE("image/pixels: a view of rows with and without gaps, and of a part") {
  std::vector<std::uint16_t> values(4 * 10);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint16_t>(i);
  const ps::pixel_view<std::uint16_t, 3> pitched(values.data(), {3, 4}, 10);
  CHECK_FALSE(pitched.dense());
  CHECK(pitched.row_values() == 9);
  CHECK(*pitched.at(2, 3) == 36);
  CHECK(pitched.row(1) == values.data() + 10);
  const auto part = pitched.part({1, 2, 2, 1});
  CHECK(part.size() == ps::image_size{2, 1});
  CHECK(*part.data() == 23);
  CHECK(part.dense());  // one row has no gap
  const ps::pixel_view<std::uint16_t, 1> dense(values.data(), {10, 4});
  CHECK(dense.dense());
  CHECK(dense.pitch() == 10);
  CHECK(*dense.at(9, 3) == 39);
  const ps::pixel_view<std::uint16_t, 3> none;
  CHECK(none.data() == nullptr);
  CHECK(none.height() == 0);
}

}  // namespace pixels_test
