// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: episodes_of needs times that are numbers

#include <penstock/source/episodes.hpp>
#include <penstock/source/from.hpp>

int main() {
#ifdef PENSTOCK_WRONG
  const auto known = penstock::episodes_of(penstock::from({1, 2}), penstock::from({"a", "b"}));
#else
  const auto known = penstock::episodes_of(penstock::from({1, 2}), penstock::from({0.1, 0.2}));
#endif
  return known.count() == 0;
}
