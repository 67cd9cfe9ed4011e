// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this operation works on a sequence of tokens, which are whole numbers

#include <penstock/run/run.hpp>
#include <penstock/sequence/fill_in_the_middle.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include <vector>

namespace ps = penstock;
using sample = ps::record<ps::field<"tokens", std::vector<int>>, ps::field<"id", int>>;

int main() {
  const auto samples = ps::from(std::vector<sample>{sample(std::vector<int>{1, 2}, 1)});
  const auto fill = ps::fill_in_the_middle({.prefix_token = 1, .middle_token = 2, .suffix_token = 3});
#ifdef PENSTOCK_WRONG
  auto loader = samples | ps::map(fill) | ps::batch(1, ps::collate<"tokens">(ps::ragged));
#else
  auto loader = samples | ps::map<"tokens">(fill) | ps::batch(1, ps::collate<"tokens">(ps::ragged));
#endif
  std::size_t sum = 0;
  for (auto&& b : loader.epoch(0)) sum += b.size();
  return sum == 0;
}
