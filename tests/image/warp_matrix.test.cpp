// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/image/warp_matrix.hpp>

#include "support/catch.hpp"

#include <cmath>

namespace warp_matrix_test {

namespace ps = penstock;

namespace {

bool near(const ps::image_point& a, const ps::image_point& b) {
  return std::abs(a.x - b.x) < 1e-9 && std::abs(a.y - b.y) < 1e-9;
}

}  // namespace

TEST_CASE("image/warp_matrix: where pixels come from") {
  CHECK(ps::warp_matrix{.c = 10}.apply({0, 0}) == ps::image_point{10, 0});
  // clockwise, with y downwards: what was above is now to the right
  CHECK(near(ps::matrix_of({.degrees = 90}).apply({5, 0}), {0, -5}));
  CHECK(near(ps::matrix_of({.translate = {3, 4}}).apply({3, 4}), {0, 0}));
  CHECK(near(ps::matrix_of({.scale = 2}).apply({6, -8}), {3, -4}));
  CHECK(near(ps::matrix_of({.degrees = 33, .scale = 2, .shear = {4, 5}, .center = {7, 8}}).apply({7, 8}),
             {7, 8}));
  CHECK(near(ps::matrix_of({.shear = {45, 0}}).apply({0, 3}), {3, 3}));
}

TEST_CASE("image/warp_matrix: the inverse goes back") {
  const ps::warp_matrix there = ps::matrix_of(
      {.degrees = 33, .translate = {5, -6}, .scale = 0.7, .shear = {10, -20}, .center = {7, 8}});
  const ps::warp_matrix back = there.inverse();
  for (const ps::image_point p : {ps::image_point{0, 0}, ps::image_point{10, -3}, ps::image_point{-100, 40}})
    CHECK(near(back.apply(there.apply(p)), p));
  CHECK_THROWS_AS((ps::warp_matrix{.a = 0}.inverse()), ps::error);
  CHECK_THROWS_AS((ps::warp_matrix{.a = 1, .b = 2, .d = 2, .e = 4}.inverse()), ps::error);
}

TEST_CASE("image/warp_matrix: the size that holds all") {
  CHECK(ps::expanded_size(ps::matrix_of({}), {13, 8}) == ps::image_size{13, 8});
  CHECK(ps::expanded_size(ps::matrix_of({.degrees = 90}), {13, 8}) ==
        ps::image_size{9, 14});  // torchvision's
  CHECK(ps::expanded_size(ps::matrix_of({.degrees = 180}), {13, 8}) == ps::image_size{13, 8});
  CHECK(ps::expanded_size(ps::matrix_of({.degrees = 45}), {10, 10}).width >= 14);
  CHECK(ps::expanded_size(ps::matrix_of({.degrees = 30}), {0, 0}) == ps::image_size{0, 0});
  CHECK_THROWS_AS(ps::expanded_size({.a = 1e9}, {1000, 1000}), ps::error);
}

}  // namespace warp_matrix_test
