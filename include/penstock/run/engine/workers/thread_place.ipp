// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/engine/workers/thread_place.hpp>

#include <penstock/core/error.hpp>
#include <penstock/run/engine/tuning/machine.hpp>

#include <cerrno>
#include <string>
#include <system_error>

#if defined(__linux__)
#include <sched.h>
#include <sys/resource.h>
#endif

namespace penstock::inline v0_1 {

PENSTOCK_INLINE void thread_place::check([[maybe_unused]] const worker_options& wanted) {
#if defined(__linux__)
  if (wanted.processors.empty()) return;
  const processor_set allowed = allowed_processors();
  processor_set others;
  for (unsigned i = 0; i < processor_set::max_processors; ++i)
    if (wanted.processors.contains(i) && !allowed.contains(i)) others.add(i);
  if (others.empty()) return;
  const bool one = others.size() == 1;
  throw error(errc::argument,
              {"workers on processors ", wanted.processors.describe(), ": ", others.describe(),
               one ? " is" : " are", " not there or not allowed to this process, which may use ",
               allowed.describe(), "; a thread that binds itself should do so after it opens the run"})
      .in_stage("workers");
#else
  if (!wanted.processors.empty() || wanted.nice)
    throw error(errc::argument, "processors and nice of workers need Linux; write workers(n) here")
        .in_stage("workers");
#endif
}

PENSTOCK_INLINE run_options thread_place::near(run_options options, const near_processors& where,
                                               std::uint64_t local_ranks) {
  if (where.processors.empty() || !options.threads.processors.empty() || options.workers == 0u)
    return options;
  const processor_set mine = processors_of_this_thread();
  processor_set both;
  for (unsigned i = 0; i < processor_set::max_processors; ++i)
    if (mine.contains(i) && where.processors.contains(i)) both.add(i);
  if (both.empty() || both == mine) return options;
  if (options.workers.value_or(default_workers(local_ranks)) > both.size()) {
    if (!where.always) return options;
    if (!options.workers) options.workers = both.size();
  }
  options.threads.processors = both;
  return options;
}

PENSTOCK_INLINE thread_place::refusal thread_place::apply([[maybe_unused]] int& code) const noexcept {
#if defined(__linux__)
  if (!wanted_.processors.empty()) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (unsigned i = 0; i < processor_set::max_processors; ++i)
      if (wanted_.processors.contains(i)) CPU_SET(i, &set);
    if (::sched_setaffinity(0, sizeof set, &set) != 0) {
      code = errno;
      return refusal::processors;
    }
  }
  // On Linux this is of the calling thread, not of the process.
  if (wanted_.nice && ::setpriority(PRIO_PROCESS, 0, *wanted_.nice) != 0) {
    code = errno;
    return refusal::nice;
  }
#endif
  return refusal::none;
}

PENSTOCK_INLINE void thread_place::enter() noexcept {
  if (!asks()) return;
  int code = 0;
  const refusal refused = apply(code);
  const std::lock_guard guard(lock_);
  if (refused != refusal::none) {
    refused_ = refused;
    code_ = code;
  }
  ++entered_;
  changed_.notify_one();  // with the lock: the opener may leave as soon as it has it
}

PENSTOCK_INLINE void thread_place::await(unsigned threads) {
  if (!asks()) return;
  std::unique_lock held(lock_);
  changed_.wait(held, [&] { return entered_ >= threads; });
  if (refused_ == refusal::none) return;
  const std::string why = std::generic_category().message(code_);
  if (refused_ == refusal::processors)
    throw error(errc::argument,
                {"workers could not be bound to processors ", wanted_.processors.describe(), " (", why, ")"})
        .in_stage("workers");
  throw error(errc::argument, {"workers could not be given nice ", *wanted_.nice, " (", why,
                               "); a nice below that of the thread that opens the run needs CAP_SYS_NICE or "
                               "RLIMIT_NICE"})
      .in_stage("workers");
}

}  // namespace penstock::inline v0_1
