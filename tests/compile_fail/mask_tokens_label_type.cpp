// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: labels of mask_tokens are std::int64_t, or std::int32_t

#include <penstock/run/run.hpp>
#include <penstock/sequence/mask_tokens.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include <vector>

namespace ps = penstock;

int main() {
  const auto samples = ps::from(std::vector<std::vector<int>>{{1, 2}});
#ifdef PENSTOCK_WRONG
  using label = std::uint16_t;
#else
  using label = std::int32_t;
#endif
  auto loader = samples |
                ps::map(ps::mask_tokens<"tokens", "labels", label>({.mask_token = 103, .vocabulary = 1000})) |
                ps::batch(1, ps::ragged);
  std::size_t sum = 0;
  for (auto&& b : loader.epoch(0)) sum += b.size();
  return sum == 0;
}
