// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Views of range-v3 as the source of a plan, and over its run.

#include <penstock/integration/range_v3.hpp>

#include <penstock/order/shuffle.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

#include <range/v3/numeric/accumulate.hpp>
#include <range/v3/range/conversion.hpp>
#include <range/v3/view/concat.hpp>
#include <range/v3/view/drop.hpp>
#include <range/v3/view/enumerate.hpp>
#include <range/v3/view/join.hpp>
#include <range/v3/view/stride.hpp>
#include <range/v3/view/take.hpp>
#include <range/v3/view/transform.hpp>

#include <cstdio>
#include <vector>

namespace ps = penstock;
namespace rv = ranges::views;

int main() {
  // Two datasets as one, without a copy. The view keeps random access and a size, so it is an indexed source.
  const std::vector<int> old_samples(60, 1), new_samples(40, 10);
  const auto loader =
      ps::from(rv::concat(old_samples, new_samples)) | ps::shuffle(ps::seed(7)) | ps::batch(25);
  static_assert(ps::indexed<decltype(loader)>, "a position may be read at any time");
  auto run = loader.open();

  // A run is a range: a warm-up of two batches.
  const auto total = [](auto& batch) { return ranges::accumulate(batch.values(), 0); };
  int warm_up = 0;
  for (auto&& [number, batch] : run | rv::enumerate | rv::take(2)) {
    std::printf("warm-up %d: %d samples\n", static_cast<int>(number), static_cast<int>(batch.size()));
    warm_up += total(batch);
  }

  // Its epochs are views: three epochs, the first of them after the warm-up, as one range of batches.
  const std::vector<int> totals =
      ps::epochs_of(run, 3) | ranges::views::join | ranges::views::transform(total) | ranges::to<std::vector>;
  // And every second batch of one more epoch.
  int half = 0;
  for (auto&& b : ps::epoch_of(run, 3) | ranges::views::stride(2)) half += total(b);
  for (const int t : totals) std::printf("%d ", t);
  std::puts("");
  return totals.size() == 10 && ranges::accumulate(totals, warm_up) == 3 * 460 && half > 0 && half < 460 ? 0
                                                                                                         : 1;
}
