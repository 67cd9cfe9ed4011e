// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/engine/workers/thread.hpp>

#include <penstock/core/error.hpp>

#include <sys/mman.h>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE void joined_thread::take_name() noexcept {
#if defined(__linux__)
  ::pthread_setname_np(::pthread_self(), "penstock");
#endif
}

PENSTOCK_INLINE home_process::home_process() noexcept : id_(::getpid()) {
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

PENSTOCK_INLINE home_process::~home_process() {
  if (mark_ != nullptr) ::munmap(mark_, static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
}

PENSTOCK_INLINE void home_process::refuse() {
  throw error(errc::argument,
              "this run was opened before fork(), and its workers are in the parent; open the plan in the "
              "child as well, or fork first");
}

}  // namespace penstock::inline v0_1
