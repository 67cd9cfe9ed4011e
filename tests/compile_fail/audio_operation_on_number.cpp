// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this operation works on sounds and gets something else

#include <penstock/audio.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include <vector>

namespace ps = penstock;

int main() {
#ifdef PENSTOCK_WRONG
  const auto samples = ps::from(std::vector<float>{0.5f, 0.25f});
#else
  ps::kept_sound tone;
  tone.assign(std::vector<float>(16'000, 0.5f), {.frames = 16'000, .rate = 16'000, .channels = 1});
  const auto samples = ps::from({1, 2}) | ps::map([&](int) { return tone.shown(); });
#endif
  auto loader = samples | ps::map(ps::crop(0.25, 0.5)) | ps::batch(2);
  std::size_t sum = 0;
  for (auto&& b : loader.epoch(0)) sum += b.size();
  return sum == 0;
}
