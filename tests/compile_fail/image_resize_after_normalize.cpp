// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this operation works on images of 8 bits and gets other numbers

#include <penstock/codec/pixels.hpp>
#include <penstock/image.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/map.hpp>

#include <string>
#include <vector>

namespace ps = penstock;

int main() {
  const auto images = ps::from(std::vector<std::string>{"rgb", "bgr"}) |
                      ps::decode<ps::pixels<ps::rgb8>>(ps::pixels<ps::rgb8>{.width = 1, .height = 1});
#ifdef PENSTOCK_WRONG
  auto loader = images | ps::map(ps::normalize(ps::imagenet), ps::resize(2, 2)) | ps::batch(2);
#else
  auto loader = images | ps::map(ps::resize(2, 2), ps::normalize(ps::imagenet)) | ps::batch(2);
#endif
  std::size_t sum = 0;
  for (auto&& b : loader.epoch(0)) sum += b.size();
  return sum == 0;
}
