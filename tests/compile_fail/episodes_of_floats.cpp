// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: episodes_of needs a column of whole numbers or of texts

#include <penstock/source/episodes.hpp>
#include <penstock/source/from.hpp>

int main() {
#ifdef PENSTOCK_WRONG
  const auto known = penstock::episodes_of(penstock::from({1.5, 2.5}));
#else
  const auto known = penstock::episodes_of(penstock::from({1, 2}));
#endif
  return known.count() == 0;
}
