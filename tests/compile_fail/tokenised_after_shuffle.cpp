// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: tokenised needs the samples as the source has them

#include <penstock/inspection/tokenised.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/workers.hpp>

#include <cstdint>
#include <vector>

int main() {
  const auto texts = penstock::from(std::vector<std::vector<std::int32_t>>{{1, 2}, {3}});
#ifdef PENSTOCK_WRONG
  const auto plan = texts | penstock::shuffle(penstock::seed(1));
#else
  const auto plan = texts | penstock::workers(2);
#endif
  const auto docs = penstock::tokenised<std::uint16_t>(plan, "mine", "/dev/null/nothing");
  return docs.size() == 0;
}
