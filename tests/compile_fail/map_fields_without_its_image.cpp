// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the first field of a map with masks, boxes or points is their image

#include <penstock/codec/pixels.hpp>
#include <penstock/codec/text.hpp>
#include <penstock/image/augment.hpp>
#include <penstock/image/companions.hpp>
#include <penstock/image/flip.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/map_fields.hpp>

#include <string>
#include <vector>

namespace ps = penstock;
using sample = ps::record<ps::field<"jpg", std::string>, ps::field<"boxes", std::vector<float>>,
                          ps::field<"txt", std::string>>;

int main() {
  const std::vector<sample> samples{
      sample(std::string(12, 'x'), std::vector<float>{0, 0, 1, 1}, std::string("a"))};
  auto images =
      ps::from(samples) | ps::decode<ps::field<"jpg", ps::pixels<ps::rgb8>>, ps::field<"txt", ps::text>>(
                              ps::pixels<ps::rgb8>{.width = 2, .height = 2}, ps::text{});
#ifdef PENSTOCK_WRONG
  auto loader = images | ps::map<ps::as_boxes<"boxes">>(ps::horizontal_flip()) | ps::batch(1, ps::ragged);
#else
  auto loader =
      images | ps::map<"jpg", ps::as_boxes<"boxes">>(ps::horizontal_flip()) | ps::batch(1, ps::ragged);
#endif
  int sum = 0;
  for (auto&& b : loader.epoch(0)) sum += static_cast<int>(b.size());
  return sum == 0;
}
