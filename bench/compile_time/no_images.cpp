// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The program of images.cpp without images: arrays, and a function of its own.

#include <penstock/codec/integer.hpp>
#include <penstock/codec/npy.hpp>
#include <penstock/penstock.hpp>

namespace ps = penstock;

int main() {
  auto loader = ps::webdataset("arrays-{0000..0003}.tar") | ps::fields<"npy", "cls"> |
                ps::decode<ps::field<"npy", ps::npy<float>>, ps::field<"cls", ps::integer>> |
                ps::map<"npy">([](ps::tensor_view<const float> values) { return values; }) |
                ps::shuffle(ps::seed(7)) | ps::batch(16);
  float sum = 0;
  for (auto&& b : loader.epoch(0)) sum += ps::get<"npy">(b).data()[0];
  return sum < 0 ? 1 : 0;
}
