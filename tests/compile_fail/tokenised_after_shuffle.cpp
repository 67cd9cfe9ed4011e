// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: tokenised needs the samples as the source has them

#include <penstock/inspection/tokenised.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/source/from.hpp>

#include <cstdint>
#include <vector>

int main() {
  const auto texts = penstock::from(std::vector<std::vector<std::int32_t>>{{1, 2}, {3}});
#ifdef PENSTOCK_WRONG
  const auto docs = penstock::tokenised<std::uint16_t>(texts | penstock::shuffle(penstock::seed(1)), "mine",
                                                       "/dev/null/nothing");
#else
  const auto docs = penstock::tokenised<std::uint16_t>(texts, "mine", "/dev/null/nothing") |
                    penstock::shuffle(penstock::seed(1));
#endif
  return docs.source().size() == 0;
}
