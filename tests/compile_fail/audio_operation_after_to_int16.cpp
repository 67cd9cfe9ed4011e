// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this operation works on sounds and comes after to_int16

#include <penstock/audio.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include <vector>

namespace ps = penstock;

int main() {
  ps::kept_sound tone;
  tone.assign(std::vector<float>(16'000, 0.5f), {.frames = 16'000, .rate = 16'000, .channels = 1});
  const auto sounds = ps::from({1, 2}) | ps::map([&](int) { return tone.shown(); });
#ifdef PENSTOCK_WRONG
  auto loader = sounds | ps::map(ps::to_int16(), ps::crop(0.25, 0.5)) | ps::batch(2);
#else
  auto loader = sounds | ps::map(ps::crop(0.25, 0.5), ps::to_int16()) | ps::batch(2);
#endif
  std::size_t sum = 0;
  for (auto&& b : loader.epoch(0)) sum += b.size();
  return sum == 0;
}
