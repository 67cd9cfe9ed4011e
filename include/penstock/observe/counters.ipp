// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/observe/counters.hpp>

#include <algorithm>
#include <cstddef>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE run_counters since(run_counters now, const run_counters& before) {
  const auto lessen = [](auto& from_this, auto that) { from_this = from_this > that ? from_this - that : 0; };
  lessen(now.samples, before.samples);
  lessen(now.bytes, before.bytes);
  lessen(now.batches, before.batches);
  lessen(now.skipped, before.skipped);
  lessen(now.replaced, before.replaced);
  lessen(now.warnings, before.warnings);
  lessen(now.storage.requests, before.storage.requests);
  lessen(now.storage.bytes, before.storage.bytes);
  lessen(now.storage.slow_downs, before.storage.slow_downs);
  lessen(now.storage.retries, before.storage.retries);
  lessen(now.storage.given_up, before.storage.given_up);
  lessen(now.storage.throttled, before.storage.throttled);
  lessen(now.storage.hedges, before.storage.hedges);
  lessen(now.storage.hedges_won, before.storage.hedges_won);
  lessen(now.storage.hits, before.storage.hits);
  lessen(now.storage.fetched, before.storage.fetched);
  lessen(now.storage.refetched, before.storage.refetched);
  lessen(now.storage.evicted, before.storage.evicted);
  lessen(now.storage.corrupt, before.storage.corrupt);
  lessen(now.storage.uncached, before.storage.uncached);
  lessen(now.kept.hits, before.kept.hits);
  lessen(now.kept.uncached, before.kept.uncached);
  lessen(now.seconds, before.seconds);
  lessen(now.worker_seconds, before.worker_seconds);
  lessen(now.stall_seconds, before.stall_seconds);
  lessen(now.worker_busy_seconds, before.worker_busy_seconds);
  lessen(now.waiting_for_room, before.waiting_for_room);
  lessen(now.waiting_for_room_in_stall, before.waiting_for_room_in_stall);
  lessen(now.waiting_for_input, before.waiting_for_input);
  for (std::size_t i = 0; i < std::min(now.stages.size(), before.stages.size()); ++i) {
    lessen(now.stages[i].samples, before.stages[i].samples);
    lessen(now.stages[i].busy_seconds, before.stages[i].busy_seconds);
  }
  return now;
}

}  // namespace penstock::inline v0_1
