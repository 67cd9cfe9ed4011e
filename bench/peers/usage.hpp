// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <sys/resource.h>

#include <fstream>
#include <string>

/// What this process has used, as bench/peers/common.py measures it.
namespace bench {

[[nodiscard]] inline double cpu_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

struct megabytes {
  double all = 0, own = 0;  ///< own: without pages of files
};

[[nodiscard]] inline megabytes memory() {
  std::ifstream lines("/proc/self/smaps_rollup");
  megabytes found;
  for (std::string word; lines >> word;) {
    double kilobytes = 0;
    if (word == "Pss:" && lines >> kilobytes) found.all = kilobytes / 1000;
    if ((word == "Pss_Anon:" || word == "Pss_Shmem:") && lines >> kilobytes) found.own += kilobytes / 1000;
  }
  return found;
}

}  // namespace bench
