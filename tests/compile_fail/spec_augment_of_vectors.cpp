// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: spec_augment works on features, which are arrays of real numbers with two dimensions

#include <penstock/audio/log_mel.hpp>
#include <penstock/audio/spec_augment.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include <vector>

namespace ps = penstock;

int main() {
  const auto sounds = ps::from(std::vector<std::vector<float>>{{0.5f, -0.5f}});
#ifdef PENSTOCK_WRONG
  auto loader = sounds | ps::map(ps::spec_augment()) | ps::batch(1);
#else
  auto loader = sounds | ps::map(ps::log_mel(), ps::spec_augment()) | ps::batch(1);
#endif
  std::size_t sum = 0;
  for (auto&& b : loader.epoch(0)) sum += b.size();
  return sum == 0;
}
