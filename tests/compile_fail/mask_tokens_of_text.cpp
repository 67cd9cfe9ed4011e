// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this operation works on a sequence of tokens, which are whole numbers

#include <penstock/run/run.hpp>
#include <penstock/sequence/mask_tokens.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include <string>
#include <vector>

namespace ps = penstock;
using sample = ps::record<ps::field<"text", std::string>, ps::field<"tokens", std::vector<int>>>;

int main() {
  const auto samples = ps::from(std::vector<sample>{sample("a", std::vector<int>{1, 2})});
#ifdef PENSTOCK_WRONG
  auto loader = samples | ps::map(ps::mask_tokens<"text">({.mask_token = 103, .vocabulary = 1000})) |
                ps::batch(1, ps::ragged);
#else
  auto loader = samples | ps::map(ps::mask_tokens<"tokens">({.mask_token = 103, .vocabulary = 1000})) |
                ps::batch(1, ps::ragged);
#endif
  std::size_t sum = 0;
  for (auto&& b : loader.epoch(0)) sum += b.size();
  return sum == 0;
}
