// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>

#include <cstddef>

#include <sys/mman.h>
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

inline home_process::home_process() noexcept : id_(::getpid()) {
#ifdef MADV_WIPEONFORK
  const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* const page = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return;
  if (::madvise(page, size, MADV_WIPEONFORK) != 0) {
    ::munmap(page, size);
    return;
  }
  mark_ = static_cast<unsigned char*>(page);
  *mark_ = 1;
#endif
}

inline home_process::~home_process() {
  if (mark_ != nullptr) ::munmap(mark_, static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
}

inline void home_process::refuse() {
  throw error(errc::argument,
              "this run was opened before fork(), and its workers are in the parent; open the plan in the "
              "child as well, or fork first");
}

}  // namespace penstock::inline v0_1
