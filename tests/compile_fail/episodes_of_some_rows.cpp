// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: episodes_of takes rows as the source has them

#include <penstock/order/take.hpp>
#include <penstock/source/episodes.hpp>
#include <penstock/source/from.hpp>

int main() {
#ifdef PENSTOCK_WRONG
  const auto known = penstock::episodes_of(penstock::from({1, 2}) | penstock::take(1));
#else
  const auto known = penstock::episodes_of(penstock::from({1, 2}));
#endif
  return known.count() == 0;
}
