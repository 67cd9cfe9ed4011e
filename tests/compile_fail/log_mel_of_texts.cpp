// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: log_mel and mfcc work on the samples of a sound

#include <penstock/audio/log_mel.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include <string>
#include <vector>

namespace ps = penstock;

int main() {
#ifdef PENSTOCK_WRONG
  const auto sounds = ps::from(std::vector<std::string>{"a text"});
#else
  const auto sounds = ps::from(std::vector<std::vector<float>>{{0.5f, -0.5f}});
#endif
  auto loader = sounds | ps::map(ps::log_mel()) | ps::batch(1);
  std::size_t sum = 0;
  for (auto&& b : loader.epoch(0)) sum += b.size();
  return sum == 0;
}
