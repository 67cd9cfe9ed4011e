// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the fields that join_fields joins hold tokens of different types

#include <penstock/run/run.hpp>
#include <penstock/sequence/join_fields.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include <cstdint>
#include <vector>

namespace ps = penstock;
#ifdef PENSTOCK_WRONG
using answers = std::vector<std::int64_t>;
#else
using answers = std::vector<std::int32_t>;
#endif
using sample = ps::record<ps::field<"prompt", std::vector<std::int32_t>>, ps::field<"answer", answers>>;

int main() {
  const std::vector<sample> samples(1, sample(std::vector<std::int32_t>{1, 2}, answers{3}));
  auto loader =
      ps::from(samples) | ps::map(ps::join_fields<"tokens", "prompt", "answer">()) | ps::batch(1, ps::ragged);
  std::size_t sum = 0;
  for (auto&& b : loader.epoch(0)) sum += b.size();
  return sum == 0;
}
