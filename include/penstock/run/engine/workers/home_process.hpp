// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>

#include <sys/types.h>
#include <unistd.h>

namespace penstock::inline v0_1 {

/// Remembers the process that created it: after `fork()`, a child has a run's memory but none of its threads.
///
/// A check costs one load where the kernel can wipe a page on fork (Linux 4.14), otherwise a `getpid`. Any
/// thread may check.
class home_process {
 public:
  home_process() noexcept;
  home_process(const home_process&) = delete;
  home_process& operator=(const home_process&) = delete;
  ~home_process();

  /// False in a child of the process that created this.
  [[nodiscard]] bool here() const noexcept { return mark_ != nullptr ? *mark_ != 0 : ::getpid() == id_; }
  /// Throws `errc::argument` in a child.
  void check() const {
    if (!here()) refuse();
  }

 private:
  [[noreturn]] static void refuse();

  pid_t id_;
  unsigned char* mark_ = nullptr;  // 0 in a child
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/run/engine/workers/home_process.ipp>
#endif
