// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/observe/counters.hpp>

#include <algorithm>
#include <cstddef>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE run_counters since(run_counters now, const run_counters& before) {
  const auto lessen = [](auto& from_this, auto that) { from_this = from_this > that ? from_this - that : 0; };
  using c = run_counters;
  for (const auto one : {&c::samples, &c::bytes, &c::batches, &c::skipped, &c::replaced, &c::warnings})
    lessen(now.*one, before.*one);
  for (const auto one :
       {&c::seconds, &c::worker_seconds, &c::stall_seconds, &c::worker_busy_seconds, &c::stall_on_slow_sample,
        &c::waiting_for_copy, &c::waiting_for_room, &c::waiting_for_room_in_stall, &c::waiting_for_input})
    lessen(now.*one, before.*one);
  const auto lessen_all = [&](duration_counts& from_this, const duration_counts& that) {
    for (std::size_t i = 0; i < duration_counts::buckets; ++i) lessen(from_this.counts[i], that.counts[i]);
    lessen(from_this.sum_ns, that.sum_ns);
  };
  lessen_all(now.block_waits, before.block_waits);
  lessen_all(now.storage_requests.durations, before.storage_requests.durations);
  for (const auto one : {&store_requests::answered, &store_requests::failed, &store_requests::cancelled})
    lessen(now.storage_requests.*one, before.storage_requests.*one);
  for (const auto one : storage_counters::all)
    if (one != &storage_counters::held) lessen(now.storage.*one, before.storage.*one);
  lessen(now.kept.hits, before.kept.hits);
  lessen(now.kept.uncached, before.kept.uncached);
  for (std::size_t i = 0; i < std::min(now.stages.size(), before.stages.size()); ++i) {
    lessen(now.stages[i].samples, before.stages[i].samples);
    lessen(now.stages[i].busy_seconds, before.stages[i].busy_seconds);
  }
  return now;
}

}  // namespace penstock::inline v0_1
