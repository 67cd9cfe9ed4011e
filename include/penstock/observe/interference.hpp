// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace penstock::inline v0_1 {

/// One figure of the system, and the file that it comes from. Where the system does not tell, there is no
/// file, and nothing is concluded.
struct system_figure {
  double value = 0;
  std::string file;

  [[nodiscard]] bool known() const { return !file.empty(); }
};

/// The time that one thread of this process has had so far, and that it was ready and waited for a processor.
struct thread_time {
  std::uint64_t id = 0;
  bool of_loader = false;  ///< a thread of a run, by its name, `penstock`
  double ran = 0, waited = 0;
};

/// What the system says of this process and of what it shares, at one moment; see `read_interference`. Times
/// are in seconds, since an arbitrary moment.
struct interference {
  double seconds = 0;             ///< of the steady clock
  system_figure quota;            ///< processors that the control group may use
  system_figure throttled, used;  ///< its threads were stopped by the quota, and its processor time
  system_figure processors;       ///< how many this process may use
  system_figure busy, stolen;     ///< these, by all processes and by the hypervisor
  /// some task waited for these
  system_figure cpu_pressure, io_pressure, memory_pressure;
  system_figure refaults, read;         ///< bytes read again after they had been dropped, and all from disks
  system_figure major_faults;           ///< pages that this process waited for
  system_figure nodes;                  ///< of memory
  system_figure near_pages, far_pages;  ///< allocated, by the node of the thread that asked
  system_figure far_processors;         ///< whose node's memory is not allowed
  std::vector<thread_time> threads;
  std::string threads_file;  ///< empty if not known
};

struct interference_options {
  std::string root = "/";  ///< where `proc` and `sys` are
};

/// Reads the counts: of the control group (version 2, and processors also of version 1) the quota, how long
/// it stopped threads, pressure and pages that were read again; how long each thread of this process waited
/// for a processor; how busy the processors are that it may use; faults; where memory was allocated.
///
/// A file that is missing or not readable, as in some containers and on other systems than Linux, leaves its
/// figures unknown. Cost: reads some twenty small files and two for each thread. Nothing in a run calls this.
/// Throws only `std::bad_alloc`.
///
///     const interference before = read_interference();
///     for (auto&& b : run.epoch(0)) train(b);
///     const run_counters counters = run.counters();
///     std::cerr << report(counters, {}, findings(before, read_interference(), counters.workers));
[[nodiscard]] interference read_interference(const interference_options& options = {});

/// One thing outside the loader that held the process up.
struct finding {
  std::string_view what;  ///< "quota", "processors", "memory", "page cache", "disk", "hypervisor" or "NUMA"
  double share = 0;       ///< of the time, or of what was read or allocated
  std::string sentence;
  std::string file;  ///< what says so
};

/// What held this process up between two readings, the largest share first. Shares below 5 % are not
/// mentioned.
///
/// `workers`: those of the run, to tell whether there are processors for them and for the loop. Throws only
/// `std::bad_alloc`.
[[nodiscard]] std::vector<finding> findings(const interference& before, const interference& after,
                                            unsigned workers = 0);

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/observe/interference.ipp>
#endif
