// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A training program's five lines, with images; see no_images.cpp.

#include <penstock/codec/integer.hpp>
#include <penstock/codec/jpeg.hpp>
#include <penstock/image.hpp>
#include <penstock/penstock.hpp>

namespace ps = penstock;

int main() {
  auto loader = ps::webdataset("photos-{0000..0003}.tar") | ps::fields<"jpg", "cls"> |
                ps::decode<ps::field<"jpg", ps::jpeg>, ps::field<"cls", ps::integer>> |
                ps::map<"jpg">(ps::random_resized_crop(224), ps::horizontal_flip(),
                               ps::normalize(ps::imagenet), ps::to_chw()) |
                ps::shuffle(ps::seed(7)) | ps::batch(16);
  float sum = 0;
  for (auto&& b : loader.epoch(0)) sum += ps::get<"jpg">(b).data()[0];
  return sum < 0 ? 1 : 0;
}
