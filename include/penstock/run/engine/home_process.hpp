// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>

#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstddef>

namespace penstock::inline v0_1 {

/// Remembers in which process it was made: a child after `fork()` has the memory of a run and none of its
/// threads.
///
/// Asking costs one load, where the kernel can wipe a page on fork (Linux 4.14); elsewhere a `getpid`. Any
/// thread asks.
class home_process {
 public:
  home_process() noexcept : id_(::getpid()) {
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
  home_process(const home_process&) = delete;
  home_process& operator=(const home_process&) = delete;
  ~home_process() {
    if (mark_ != nullptr) ::munmap(mark_, static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
  }

  /// False in a child of the process where this was made.
  [[nodiscard]] bool here() const noexcept { return mark_ != nullptr ? *mark_ != 0 : ::getpid() == id_; }
  /// Throws `errc::argument` in a child.
  void check() const {
    if (!here()) refuse();
  }

 private:
  [[noreturn, gnu::cold, gnu::noinline]] static void refuse() {
    throw error(errc::argument,
                "this run was opened before fork(), and its workers are in the parent; open the plan in the "
                "child as well, or fork first");
  }

  pid_t id_;
  unsigned char* mark_ = nullptr;  // 0 in a child
};

}  // namespace penstock::inline v0_1
