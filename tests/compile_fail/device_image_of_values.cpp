// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: on a device get images of 8 bits, and this column has other numbers

#include <penstock/device/image/operations.hpp>
#include <penstock/device/simulated.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/on_device.hpp>
#include <penstock/stage/pin_and_copy.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

const std::vector<std::uint8_t> pixels(8 * 8 * 3);

penstock::tensor_view<const std::uint8_t> image(std::uint64_t) {
  return {pixels.data(), penstock::extents(8, 8, 3)};
}

}  // namespace

int main() {
  auto values = penstock::generated(4, [](std::uint64_t) {
    return penstock::tensor_view<const float>(nullptr, penstock::extents(0, 0, 3));
  });
  auto images = penstock::generated(4, image);
#ifdef PENSTOCK_WRONG
  auto loader = values | penstock::batch(2) | penstock::pin_and_copy(penstock::simulated()) |
                penstock::on_device(penstock::horizontal_flip());
#else
  auto loader = images | penstock::batch(2) | penstock::pin_and_copy(penstock::simulated()) |
                penstock::on_device(penstock::horizontal_flip());
#endif
  std::size_t sum = 0;
  for (auto&& b : loader.epoch(0)) sum += b.size();
  return sum == 0;
}
