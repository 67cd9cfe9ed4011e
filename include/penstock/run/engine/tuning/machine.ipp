// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/engine/tuning/machine.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#include <unistd.h>
#endif

namespace penstock::inline v0_1 {

namespace detail {

/// The processors that a cgroup's quota allows, or 0 for no limit. Version 2 first, then version 1.
PENSTOCK_INLINE double cgroup_quota() {
  double quota = 0, period = 0;
  if (std::FILE* f = std::fopen("/sys/fs/cgroup/cpu.max", "re")) {
    if (std::fscanf(f, "%lf %lf", &quota, &period) != 2) quota = 0;  // "max 100000"
    std::fclose(f);
  } else {
    const auto number = [](const char* path) {
      double value = 0;
      if (std::FILE* file = std::fopen(path, "re")) {
        if (std::fscanf(file, "%lf", &value) != 1) value = 0;
        std::fclose(file);
      }
      return value;
    };
    quota = number("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
    period = number("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  }
  return quota > 0 && period > 0 ? quota / period : 0;
}

#if defined(__linux__)
/// Adds the processors that a thread may use; 0 is the calling one.
PENSTOCK_INLINE void add_processors_of(pid_t thread, processor_set& all) {
  static_assert(processor_set::max_processors <= CPU_SETSIZE,
                "penstock: a cpu_set_t holds every processor_set");
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(thread, sizeof set, &set) != 0) return;
  for (unsigned i = 0; i < processor_set::max_processors; ++i)
    if (CPU_ISSET(i, &set) && !all.contains(i)) all.add(i);
}
#endif

}  // namespace detail

PENSTOCK_INLINE unsigned usable_processors() {
  unsigned count = processors_of_this_thread().size();
  if (count == 0) count = std::thread::hardware_concurrency();  // the system did not say
  if (const double quota = detail::cgroup_quota(); quota > 0)
    count = std::min(count, static_cast<unsigned>(std::ceil(quota)));
  return std::max(1u, count);
}

PENSTOCK_INLINE processor_set processors_of_this_thread() {
  processor_set all;
#if defined(__linux__)
  detail::add_processors_of(0, all);
#endif
  return all;
}

PENSTOCK_INLINE processor_set allowed_processors() {
  processor_set all;
#if defined(__linux__)
  // A main thread's id is that of its process.
  for (const pid_t thread : {pid_t{0}, ::getpid()}) detail::add_processors_of(thread, all);
#endif
  return all;
}

PENSTOCK_INLINE unsigned processors_of_rank(std::uint64_t local_ranks) {
  const std::uint64_t share = usable_processors() / std::max<std::uint64_t>(1, local_ranks);
  return static_cast<unsigned>(std::max<std::uint64_t>(1, share));
}

PENSTOCK_INLINE unsigned default_workers(std::uint64_t local_ranks) {
  const unsigned share = processors_of_rank(local_ranks);
  return share > 2 ? share - 1 : share;
}

}  // namespace penstock::inline v0_1
