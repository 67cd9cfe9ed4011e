// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/observe/timeline.hpp>

#include <penstock/base/flat_json.hpp>
#include <penstock/observe/detail/whole_file.hpp>

#include <unistd.h>
#include <algorithm>

namespace penstock::inline v0_1 {

namespace detail {

PENSTOCK_INLINE void event_ring::add(const run_event& e) noexcept {
  const std::uint64_t number = begun_.load(std::memory_order_relaxed);
  begun_.store(number + 1, std::memory_order_relaxed);
  slot& into = slots_[detail::to_size(number % capacity_)];
  const words all = {e.begin_ns, e.end_ns, (std::uint64_t{e.stage} << 8) | static_cast<std::uint64_t>(e.what),
                     e.block,    e.batch,  e.epoch,
                     e.first,    e.last,   e.samples};
  for (std::size_t i = 0; i < all.size(); ++i) into[i].store(all[i], std::memory_order_release);
  done_.store(number + 1, std::memory_order_release);
}

PENSTOCK_INLINE std::uint64_t event_ring::copy(std::vector<run_event>& all) const {
  const std::uint64_t done = done_.load(std::memory_order_acquire);
  const std::uint64_t first = done > capacity_ ? done - capacity_ : 0;
  std::uint64_t dropped = first;
  for (std::uint64_t number = first; number < done; ++number) {
    const slot& at = slots_[detail::to_size(number % capacity_)];
    words w{};
    for (std::size_t i = 0; i < w.size(); ++i) w[i] = at[i].load(std::memory_order_acquire);
    if (begun_.load(std::memory_order_acquire) > number + capacity_) {
      dropped = number + 1;
      continue;
    }
    all.push_back({w[0], w[1], static_cast<activity>(w[2] & 0xff), static_cast<std::uint32_t>(w[2] >> 8),
                   w[3], w[4], w[5], w[6], w[7], w[8]});
  }
  return dropped;
}

PENSTOCK_INLINE std::uint64_t trace_now() noexcept {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::steady_clock::now().time_since_epoch())
                                        .count());
}

PENSTOCK_INLINE trace_text::trace_text() : pid_(static_cast<std::uint64_t>(::getpid())) {}

PENSTOCK_INLINE void trace_text::process(std::string_view name) {
  begin("process_name", "M", 0);
  append(text_, {",\"args\":{\"name\":", detail::json_quoted(name), "}}"});
}

PENSTOCK_INLINE void trace_text::thread(std::uint64_t tid, std::string_view name) {
  begin("thread_name", "M", tid);
  append(text_, {",\"args\":{\"name\":", detail::json_quoted(name), "}}"});
  begin("thread_sort_index", "M", tid);
  append(text_, {",\"args\":{\"sort_index\":", tid, "}}"});
}

PENSTOCK_INLINE void trace_text::complete(std::uint64_t tid, const run_event& e, std::string_view name) {
  begin(name, "X", tid);
  append(text_, {",\"cat\":\"", category(e.what), "\",\"ts\":"});
  microseconds(e.begin_ns);
  text_ += ",\"dur\":";
  microseconds(e.end_ns - e.begin_ns);
  arguments(e);
}

PENSTOCK_INLINE void trace_text::counted(const run_event& e) {
  begin(to_string(e.what), "C", 0);
  text_ += ",\"ts\":";
  microseconds(e.begin_ns);
  if (e.what == activity::cache_counts) {
    append(text_,
           {",\"args\":{\"hits\":", e.samples, ",\"fetched\":", e.first, ",\"fetched again\":", e.last,
            ",\"evicted\":", e.batch, ",\"corrupt\":", e.block, ",\"past the cache\":", e.epoch, "}}"});
    return;
  }
  append(text_, {",\"args\":{\"requests\":", e.samples, ",\"retries\":", e.first, ",\"given up\":", e.epoch,
                 ",\"second reads\":", e.last, ",\"second reads that won\":", e.stage,
                 ",\"slow downs\":", e.batch, ",\"throttled\":", e.block, "}}"});
}

PENSTOCK_INLINE void trace_text::held(std::uint64_t tid, std::string_view id, const run_event& e,
                                      std::string_view name) {
  for (const bool opens : {true, false}) {
    begin(name, opens ? "b" : "e", tid);
    append(text_, {",\"cat\":\"hold\",\"id\":", detail::json_quoted(id), ",\"ts\":"});
    microseconds(opens ? e.begin_ns : e.end_ns);
    if (opens)
      arguments(e);
    else
      text_ += ",\"args\":{}}";
  }
}

PENSTOCK_INLINE void trace_text::lost(std::uint64_t tid, std::uint64_t when_ns, std::uint64_t count) {
  begin("events before this were dropped", "i", tid);
  text_ += ",\"s\":\"t\",\"ts\":";
  microseconds(when_ns);
  append(text_, {",\"args\":{\"dropped\":", count, "}}"});
}

PENSTOCK_INLINE std::string trace_text::finish(std::uint64_t dropped) {
  std::string whole = "{\"traceEvents\":[\n";
  whole += text_;
  append(whole, {"\n],\n\"displayTimeUnit\":\"ms\",\"otherData\":{\"dropped\":", dropped, "}}\n"});
  return whole;
}

PENSTOCK_INLINE std::string_view trace_text::category(activity a) noexcept {
  switch (a) {
    case activity::evaluate:
    case activity::stage:
    case activity::read:
      return "work";
    case activity::copy:
    case activity::wait_for_copy:
      return "device";
    default:
      return "wait";
  }
}

PENSTOCK_INLINE void trace_text::begin(std::string_view name, std::string_view phase, std::uint64_t tid) {
  append(text_, {text_.empty() ? "" : ",\n", "{\"name\":", detail::json_quoted(name), ",\"ph\":\"", phase,
                 "\",\"pid\":", pid_, ",\"tid\":", tid});
}

PENSTOCK_INLINE void trace_text::microseconds(std::uint64_t ns) {
  const std::uint64_t rest = ns % 1000;
  append(text_, {ns / 1000, '.', rest / 100, rest / 10 % 10, rest % 10});
}

PENSTOCK_INLINE void trace_text::arguments(const run_event& e) {
  text_ += ",\"args\":{";
  bool any = false;
  const auto add = [&](std::string_view name, std::uint64_t value) {
    append(text_, {any ? ",\"" : "\"", name, "\":", value});
    any = true;
  };
  if (e.what == activity::request) {
    add("object", e.block);
    add("offset", e.first);
    add("bytes", e.last - e.first);
    text_ += "}}";
    return;
  }
  if (e.block != run_event::none) add("block", e.block);
  if (e.batch != run_event::none) add("batch", e.batch);
  if (e.epoch != run_event::none) add("epoch", e.epoch);
  if (e.first != run_event::none) add("first position", e.first);
  if (e.last != run_event::none) add("last position", e.last);
  if (e.samples != 0) add("samples", e.samples);
  text_ += "}}";
}

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

}  // namespace detail

PENSTOCK_INLINE timeline::session timeline::connect(const observed_run& what) const {
  recorder& all = *shared_;
  const std::lock_guard guard(all.lock);
  std::shared_ptr<detail::recorded_run> made(
      new detail::recorded_run(what, all.opened + 1, all.given.events_per_thread));
  all.runs.push_back(made);
  ++all.opened;
  while (all.runs.size() > std::max<std::size_t>(1, all.given.runs)) all.runs.erase(all.runs.begin());
  return session(std::move(made));
}

PENSTOCK_INLINE std::uint64_t timeline::dropped() const {
  std::uint64_t sum = 0;
  for (const auto& one : kept()) sum += one->dropped();
  return sum;
}

PENSTOCK_INLINE std::string timeline::json() const {
  detail::trace_text out;
  std::uint64_t tid = 1;
  bool named = false;
  for (const auto& one : kept()) {
    const observed_run& what = one->what();
    if (!named)
      out.process(detail::text({"penstock, rank ", what.rank, " of ", what.world, ": ", what.source}));
    named = true;
    tid = one->write(out, tid);
  }
  return out.finish(dropped());
}

PENSTOCK_INLINE void timeline::write(const std::string& path) const {
  detail::write_whole_file(path, json(), "timeline", detail::trace_now());
}

PENSTOCK_INLINE std::vector<std::shared_ptr<detail::recorded_run>> timeline::kept() const {
  const std::lock_guard guard(shared_->lock);
  return shared_->runs;
}

}  // namespace penstock::inline v0_1
