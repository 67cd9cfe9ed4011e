// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/image/image_limits.hpp>

#include <penstock/core/error.hpp>

#include "support/catch.hpp"

#include <cstdint>
#include <string>

namespace image_limits_test {

namespace ps = penstock;

namespace {

std::string refusal(const ps::image_size& size, std::size_t pixel_bytes, const ps::image_limits& limits,
                    ps::errc code) {
  try {
    ps::detail::check_image_size(size, pixel_bytes, limits, "jpeg");
  } catch (const ps::error& e) {
    CHECK(e.code() == code);
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("image/image_limits: an image within the limits passes") {
  CHECK(refusal({1, 1}, 8, {}, ps::errc::limit).empty());
  CHECK(refusal({32'768, 10'000}, 3, {}, ps::errc::limit).empty());
  CHECK(refusal({100, 50}, 3, {.width = 100, .height = 50, .bytes = 15'000}, ps::errc::limit).empty());
}

TEST_CASE("image/image_limits: the sentence says what is too large, and what to write") {
  using penstock_test::contains;
  CHECK_THAT(refusal({65'500, 65'500}, 3, {}, ps::errc::limit),
             contains("the jpeg image is 65500 x 65500 pixels, and the limit is 32768 x 32768") &&
                 contains("set .limits = {.width = ..., .height = ...} of the codec"));
  CHECK_THAT(refusal({101, 50}, 3, {.width = 100}, ps::errc::limit), contains("101 x 50"));
  CHECK_THAT(refusal({50, 101}, 3, {.height = 100}, ps::errc::limit), contains("50 x 101"));
  CHECK_THAT(refusal({32'768, 32'768}, 8, {}, ps::errc::limit),
             contains("of 32768 x 32768 pixels of 8 bytes, and the limit is 1073741824 bytes") &&
                 contains("set .limits = {.bytes = ...} of the codec"));
  CHECK_THAT(refusal({0, 5}, 3, {}, ps::errc::format), contains("has no pixels: it is 0 x 5"));
  CHECK_THAT(refusal({5, 0}, 3, {}, ps::errc::format), contains("has no pixels"));
}

TEST_CASE("image/image_limits: limits of any size hold") {
  constexpr std::uint32_t maximum = 0xffff'ffff;
  constexpr std::uint64_t bytes = std::uint64_t{1} << 30;
  // 8 times their pixels is a little more than 2^64.
  CHECK_FALSE(refusal({2'147'352'580, 1'073'807'362}, 8, {maximum, maximum, bytes}, ps::errc::limit).empty());
  CHECK_FALSE(refusal({maximum, maximum}, 8, {maximum, maximum, ~std::uint64_t{0}}, ps::errc::limit).empty());
  CHECK(refusal({maximum, maximum}, 1, {maximum, maximum, ~std::uint64_t{0}}, ps::errc::limit).empty());
  CHECK(refusal({5, 1}, 3, {.bytes = 15}, ps::errc::limit).empty());
  CHECK(refusal({5, 1}, 3, {.bytes = 17}, ps::errc::limit).empty());
  CHECK_FALSE(refusal({5, 1}, 3, {.bytes = 14}, ps::errc::limit).empty());
  CHECK_FALSE(refusal({1, 1}, 3, {.bytes = 0}, ps::errc::limit).empty());
}

}  // namespace image_limits_test
