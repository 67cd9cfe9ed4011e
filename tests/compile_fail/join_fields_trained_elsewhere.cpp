// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: train_on<...> names a field that join_fields does not join

#include <penstock/run/run.hpp>
#include <penstock/sequence/join_fields.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include <vector>

namespace ps = penstock;
using sample = ps::record<ps::field<"prompt", std::vector<int>>, ps::field<"answer", std::vector<int>>>;

int main() {
  const std::vector<sample> samples(1, sample(std::vector<int>{1, 2}, std::vector<int>{3}));
#ifdef PENSTOCK_WRONG
  const auto join = ps::join_fields<"tokens", "prompt", "answer">(ps::train_on<"completion">);
#else
  const auto join = ps::join_fields<"tokens", "prompt", "answer">(ps::train_on<"answer">);
#endif
  auto loader = ps::from(samples) | ps::map(join) | ps::batch(1, ps::ragged);
  std::size_t sum = 0;
  for (auto&& b : loader.epoch(0)) sum += b.size();
  return sum == 0;
}
