// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/observe/timeline.hpp>

#include <penstock/core/message.hpp>
#include <penstock/observe/detail/recorded_run.hpp>

#include <algorithm>

namespace penstock::inline v0_1 {

struct timeline::recorder {
  explicit recorder(options o) : given(o) {}
  options given;
  std::mutex lock;  // guards everything below
  std::vector<std::shared_ptr<detail::recorded_run>> runs;
  std::uint64_t opened = 0;
};

PENSTOCK_INLINE timeline::timeline(options given) : shared_(new recorder(given)) {}

PENSTOCK_INLINE void timeline::session::note(unsigned thread, const run_event& e) noexcept {
  into_->note(thread, e);
}

PENSTOCK_INLINE void timeline::session::hold(const void* key, const run_event& e) noexcept {
  into_->hold(key, e);
}

PENSTOCK_INLINE void timeline::session::let_go(const void* key) noexcept { into_->let_go(key); }

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
  detail::write_whole_file(path, json());
}

PENSTOCK_INLINE std::vector<std::shared_ptr<detail::recorded_run>> timeline::kept() const {
  const std::lock_guard guard(shared_->lock);
  return shared_->runs;
}

}  // namespace penstock::inline v0_1
