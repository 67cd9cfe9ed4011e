// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a plan has no size(); write plan.source().size()

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

#include <cstddef>

int main() {
  const auto loader = penstock::from({1, 2, 3, 4}) | penstock::batch(2);
#ifdef PENSTOCK_WRONG
  const auto samples = static_cast<std::size_t>(loader.size());
#else
  const auto samples = static_cast<std::size_t>(loader.source().size());
#endif
  return samples == 0;
}
