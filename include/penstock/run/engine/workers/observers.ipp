// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/engine/workers/observers.hpp>

#include <algorithm>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE void detail::add_observer(std::vector<any_observer>& all, any_observer one) {
  all.push_back(std::move(one));
}

PENSTOCK_INLINE run_watch::run_watch(std::vector<any_observer> all, unsigned workers, bool in_place,
                                     bool times_grains, std::size_t stages)
    : all_(std::move(all)),
      workers_(workers),
      in_place_(in_place),
      times_grains_(times_grains),
      stages_(stages),
      stride_((stages + 15) / 8 * 8) {
  if (times_all_grains()) costs_before_.resize(std::max(1u, workers) * stride_);
}

PENSTOCK_INLINE void run_watch::consumer(run_event e, const block& b) const noexcept {
  if (!any()) return;
  describe(e, b);
  note(0, e);
}

PENSTOCK_INLINE void run_watch::grain(std::size_t i, std::span<const stage_cost> costs, const block& b,
                                      std::uint64_t first, std::uint64_t slots, std::uint64_t samples,
                                      run_event e) noexcept {
  if (!any()) return;
  e.samples = samples;
  if (samples != 0) locate(e, b, first, slots);
  note(thread_of(i), e);
  if (!times_all_grains() || stages_ == 0) return;
  std::uint64_t at = e.begin_ns;
  for (std::size_t number = 0; number < costs.size(); ++number) {
    std::uint64_t& before = costs_before_[i * stride_ + number];
    const std::uint64_t took = costs[number].nanoseconds - std::exchange(before, costs[number].nanoseconds);
    if (took == 0) continue;
    note(thread_of(i),
         {at, std::min(at + took, e.end_ns), activity::stage, static_cast<std::uint32_t>(number), e.block});
    at = std::min(at + took, e.end_ns);
  }
}

PENSTOCK_INLINE void run_watch::hold(const block& b) const noexcept {
  if (!any()) return;
  run_event e{now(), 0, in_place_ || b.from_batches ? activity::hold_batch : activity::hold_chunk};
  describe(e, b);
  for (const any_observer& one : all_) one.hold(&b, e);
}

PENSTOCK_INLINE void run_watch::let_go(const void* b) const noexcept {
  for (const any_observer& one : all_) one.let_go(b);
}

PENSTOCK_INLINE void run_watch::asked_ahead(std::uint64_t begin, std::uint64_t end,
                                            std::uint64_t samples) const noexcept {
  run_event e{begin, end, activity::ask_ahead};
  e.samples = samples;
  note(workers_ == 0 ? 0 : 1 + workers_, e);
}

PENSTOCK_INLINE void run_watch::requested(const void* key, std::uint64_t object, std::uint64_t offset,
                                          std::uint64_t bytes, std::uint64_t begin) const noexcept {
  if (!any()) return;
  run_event e{begin, 0, activity::request};
  e.block = object;
  e.first = offset;
  e.last = offset + bytes;
  for (const any_observer& one : all_) one.hold(key, e);
}

PENSTOCK_INLINE void run_watch::counted(const storage_counters& all, bool by_consumer) const noexcept {
  if (!any()) return;
  run_event e{now(), 0, activity::storage_counts};
  e.end_ns = e.begin_ns;
  e.samples = all.requests;
  e.first = all.retries;
  e.last = all.hedges;
  e.batch = all.slow_downs;
  e.block = all.throttled;
  e.epoch = all.given_up;
  e.stage = static_cast<std::uint32_t>(std::min<std::uint64_t>(all.hedges_won, ~std::uint32_t{0}));
  const unsigned thread = by_consumer || workers_ == 0 ? 0 : 1 + workers_;
  note(thread, e);
  if (all.hits + all.fetched + all.uncached == 0) return;
  run_event near{e.begin_ns, e.end_ns, activity::cache_counts};
  near.samples = all.hits;
  near.first = all.fetched;
  near.last = all.refetched;
  near.batch = all.evicted;
  near.block = all.corrupt;
  near.epoch = all.uncached;
  note(thread, near);
}

/// Fills in which batch a block is.
PENSTOCK_INLINE void run_watch::describe(run_event& e, const block& b) const noexcept {
  if (in_place_) {
    e.batch = b.batches.front().delivered.index;
    e.epoch = b.batches.front().delivered.epoch;
    for (const batch_rows& batch : b.batches) e.samples += batch.valid;
  } else if (b.from_batches) {
    e.samples = b.gathered.all().size();
    if (b.gathered.empty()) return;
    e.epoch = b.gathered.all().front().epoch;
    e.first = b.gathered.all().front().index;
    e.last = b.gathered.all().back().index;
  } else {
    e.samples = b.rows;
  }
}

/// Fills in the positions of the slots [first, first + slots): the first and the last.
PENSTOCK_INLINE void run_watch::locate(run_event& e, const block& b, std::uint64_t first,
                                       std::uint64_t slots) const noexcept {
  e.epoch = b.epoch;
  for (const batch_rows& batch : b.batches) {
    const std::uint64_t all = batch.first + batch.valid;
    const std::uint64_t begin = in_place_ ? std::max(first, batch.first) : batch.first;
    const std::uint64_t end = in_place_ ? std::min(first + slots, all) : all;
    if (begin >= end) continue;
    if (e.first == run_event::none) {
      e.first = b.index(begin);
      if (in_place_) e.batch = batch.delivered.index;
    }
    e.last = b.index(end - 1);
  }
}

}  // namespace penstock::inline v0_1
