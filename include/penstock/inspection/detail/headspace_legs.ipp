// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/inspection/detail/headspace_legs.hpp>

#include <cstdio>
#include <string>

#include <dirent.h>
#include <sys/resource.h>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE processor_use processor_use_now() {
  processor_use all;
  rusage used{};
  if (::getrusage(RUSAGE_SELF, &used) == 0) {
    const auto seconds = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    all.used = seconds(used.ru_utime) + seconds(used.ru_stime);
  }
  // "time on a processor, time waited for one, times on one", in nanoseconds; of threads that live
  if (DIR* const threads = ::opendir("/proc/self/task")) {
    while (const dirent* const one = ::readdir(threads)) {
      if (one->d_name[0] == '.') continue;
      const std::string path = std::string("/proc/self/task/") + one->d_name + "/schedstat";
      if (std::FILE* const file = std::fopen(path.c_str(), "re")) {
        unsigned long long ran = 0, waited = 0;
        if (std::fscanf(file, "%llu %llu", &ran, &waited) == 2)
          all.waited += 1e-9 * static_cast<double>(waited);
        std::fclose(file);
      }
    }
    ::closedir(threads);
  }
  return all;
}

PENSTOCK_INLINE double headspace_leg::seconds() const {
  if (turns.empty()) return 0;
  std::vector<double> sorted = turns;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t half = sorted.size() / 2;
  return sorted.size() % 2 != 0 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

PENSTOCK_INLINE processor_use headspace_leg::use_of_step() const {
  const double count = static_cast<double>(std::max<std::uint64_t>(1, steps));
  return {use.used / count, use.waited / count};
}

PENSTOCK_INLINE double headspace_leg::busy_of_step(std::size_t stage) const {
  return counters.stages[stage].busy_seconds / static_cast<double>(std::max<std::uint64_t>(1, steps));
}

PENSTOCK_INLINE void headspace_turn::start(const run_counters& now) {
  counters_ = now;
  use_ = processor_use_now();
  steps_ = 0;
  start_ = clock::now();
}

PENSTOCK_INLINE void headspace_turn::end(headspace_leg& leg, const run_counters& now) {
  const double seconds = std::chrono::duration<double>(end_ - start_).count();
  const processor_use use = processor_use_now();
  leg.turns.push_back(seconds / static_cast<double>(steps_));
  leg.uses.push_back({std::max(0.0, use.used - use_.used) / static_cast<double>(steps_),
                      std::max(0.0, use.waited - use_.waited) / static_cast<double>(steps_)});
  leg.steps += steps_;
  leg.use.used += std::max(0.0, use.used - use_.used);
  leg.use.waited += std::max(0.0, use.waited - use_.waited);  // of threads that ended, the wait is gone
  const run_counters more = since(now, counters_);
  run_counters& all = leg.counters;
  using c = run_counters;
  for (const auto one : {&c::samples, &c::bytes, &c::batches}) all.*one += more.*one;
  for (const auto one : {&c::seconds, &c::worker_seconds, &c::stall_seconds, &c::worker_busy_seconds,
                         &c::waiting_for_room, &c::waiting_for_room_in_stall, &c::waiting_for_input})
    all.*one += more.*one;
  all.workers = more.workers;
  all.source_computes = more.source_computes;
  if (all.stages.empty()) {
    all.stages = more.stages;
  } else {
    for (std::size_t i = 0; i < all.stages.size(); ++i) {
      all.stages[i].samples += more.stages[i].samples;
      all.stages[i].busy_seconds += more.stages[i].busy_seconds;
    }
  }
}

}  // namespace penstock::inline v0_1::detail
