// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: no field of that name reaches this stage

#include <penstock/run/run.hpp>
#include <penstock/sequence/mask_tokens.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include <vector>

namespace ps = penstock;
using sample = ps::record<ps::field<"tokens", std::vector<int>>, ps::field<"words", std::vector<int>>>;

int main() {
  const auto samples = ps::from(std::vector<sample>{sample(std::vector<int>{1, 2}, std::vector<int>{1, 1})});
  const ps::mask_tokens_options options{.mask_token = 103, .vocabulary = 1000};
#ifdef PENSTOCK_WRONG
  auto loader = samples | ps::map(ps::mask_tokens<"tokens">(options, ps::word_starts<"starts">)) |
                ps::batch(1, ps::ragged);
#else
  auto loader = samples | ps::map(ps::mask_tokens<"tokens">(options, ps::word_starts<"words">)) |
                ps::batch(1, ps::ragged);
#endif
  std::size_t sum = 0;
  for (auto&& b : loader.epoch(0)) sum += b.size();
  return sum == 0;
}
