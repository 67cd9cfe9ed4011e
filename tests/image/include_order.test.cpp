// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Names of the rest of the library must not hide those of images, whichever comes first. Other tests include
// images first.

#include <penstock/penstock.hpp>

#include <penstock/image.hpp>

#include "support/catch.hpp"
#include "support/test_image.hpp"

#include <cstdint>
#include <vector>

namespace include_order_test {

namespace ps = penstock;

TEST_CASE("image/include_order: operations compile behind the rest of the library") {
  using image = penstock_test::test_image<std::uint8_t, 3>;
  const std::vector<image> images(3, image({20, 16}, 1));
  const auto plan =
      ps::from(images) |
      ps::map(ps::color_jitter(0.2, 0.2, 0.2, 0.1), ps::autocontrast(), ps::equalize(), ps::sharpness(2),
              ps::gaussian_blur(3), ps::grayscale<3>(), ps::trivial_augment(), ps::rand_augment(),
              ps::rotate({-10, 10}), ps::random_erasing(), ps::random_resized_crop(8), ps::horizontal_flip(),
              ps::normalize(ps::imagenet), ps::to_chw()) |
      ps::seed(1) | ps::batch(3);
  std::size_t values = 0;
  for (auto&& b : plan.epoch(0)) values += b.values().size();
  CHECK(values == 3 * 3 * 8 * 8);
}

}  // namespace include_order_test
