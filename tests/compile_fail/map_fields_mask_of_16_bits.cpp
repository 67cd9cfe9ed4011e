// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a mask that is resized has 8 bits

#include <penstock/codec/pixels.hpp>
#include <penstock/image/companions.hpp>
#include <penstock/image/flip.hpp>
#include <penstock/image/resize.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/map_fields.hpp>

#include <string>
#include <vector>

namespace ps = penstock;
using sample = ps::record<ps::field<"jpg", std::string>, ps::field<"png", std::string>>;

int main() {
  const std::vector<sample> samples{sample(std::string(12, 'x'), std::string(8, 'x'))};
  auto images =
      ps::from(samples) |
      ps::decode<ps::field<"jpg", ps::pixels<ps::rgb8>>, ps::field<"png", ps::pixels<ps::gray16>>>(
          ps::pixels<ps::rgb8>{.width = 2, .height = 2}, ps::pixels<ps::gray16>{.width = 2, .height = 2});
#ifdef PENSTOCK_WRONG
  auto loader = images | ps::map<"jpg", ps::as_mask<"png">>(ps::resize(1, 1)) | ps::batch(1);
#else
  auto loader = images | ps::map<"jpg", ps::as_mask<"png">>(ps::horizontal_flip()) | ps::batch(1);
#endif
  int sum = 0;
  for (auto&& b : loader.epoch(0)) sum += static_cast<int>(b.size());
  return sum == 0;
}
