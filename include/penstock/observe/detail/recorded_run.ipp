// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/observe/detail/recorded_run.hpp>

#include <penstock/core/message.hpp>

#include <algorithm>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE recorded_run::recorded_run(const observed_run& what, std::uint64_t number, std::size_t events)
    : what_(what), number_(number), holds_(events) {
  const std::size_t threads = 1 + std::size_t{what.workers} + (what.asks_ahead ? 1 : 0);
  for (std::size_t i = 0; i < threads; ++i) threads_.push_back(std::make_unique<event_ring>(events));
  held_.reserve(1024);
}

PENSTOCK_INLINE void recorded_run::hold(const void* key, const run_event& e) noexcept {
  const std::lock_guard guard(lock_);
  if (held_.size() == held_.capacity())
    ++holds_dropped_;
  else
    held_.push_back({key, e});
}

PENSTOCK_INLINE void recorded_run::let_go(const void* key) noexcept {
  const std::uint64_t now = trace_now();
  const std::lock_guard guard(lock_);
  const auto found = std::find_if(held_.begin(), held_.end(), [key](const held& h) { return h.key == key; });
  if (found == held_.end()) return;
  found->event.end_ns = now;
  holds_.add(found->event);
  *found = held_.back();
  held_.pop_back();
}

PENSTOCK_INLINE std::uint64_t recorded_run::dropped() const {
  std::vector<run_event> unused;
  std::uint64_t sum = 0;
  for (const auto& thread : threads_) sum += thread->copy(unused);
  const std::lock_guard guard(lock_);
  return sum + holds_.copy(unused) + holds_dropped_;
}

PENSTOCK_INLINE std::uint64_t recorded_run::write(trace_text& out, std::uint64_t tid) const {
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    std::vector<run_event> events;
    const std::uint64_t lost = threads_[i]->copy(events);
    out.thread(tid + i, text({"run ", number_, ", ", role(i)}));
    if (lost != 0) out.lost(tid + i, events.empty() ? 0 : events.front().begin_ns, lost);
    for (const run_event& e : events)
      if (e.what == activity::storage_counts || e.what == activity::cache_counts)
        out.counted(e);
      else
        out.complete(tid + i, e, e.what == activity::stage ? what_.stages[e.stage] : to_string(e.what));
  }
  write_holds(out, tid);
  return tid + threads_.size();
}

PENSTOCK_INLINE std::string recorded_run::role(std::size_t thread) const {
  if (thread == 0) return "consumer";
  if (thread <= what_.workers) return text({"worker ", thread - 1});
  return "reads ahead";
}

PENSTOCK_INLINE void recorded_run::write_holds(trace_text& out, std::uint64_t tid) const {
  std::vector<run_event> events;
  std::uint64_t lost = 0;
  {
    const std::lock_guard guard(lock_);
    lost = holds_.copy(events) + holds_dropped_;
    for (const held& h : held_) {
      events.push_back(h.event);
      events.back().end_ns = trace_now();
    }
  }
  if (lost != 0) out.lost(tid, events.empty() ? 0 : events.front().begin_ns, lost);
  for (std::size_t i = 0; i < events.size(); ++i)
    out.held(tid, text({number_, '.', i}), events[i], to_string(events[i].what));
}

}  // namespace penstock::inline v0_1::detail
