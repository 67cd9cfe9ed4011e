// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/catch.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <csignal>
#include <cstddef>
#include <cstdio>

namespace penstock_test {

namespace faults {

inline volatile char* page = nullptr;

/// In a child: touches a mapped page beyond the end of its file, and exits with 0 if the signal gives its
/// address.
[[noreturn]] inline void touch_lost_page() {
  struct sigaction look {};
  look.sa_flags = SA_SIGINFO;
  look.sa_sigaction = [](int, siginfo_t* info, void*) { ::_exit(info->si_addr == page ? 0 : 1); };
  ::sigaction(SIGBUS, &look, nullptr);
  std::FILE* const file = std::tmpfile();
  if (file == nullptr) ::_exit(1);
  void* const mapped = ::mmap(nullptr, 1, PROT_READ, MAP_SHARED, ::fileno(file), 0);
  if (mapped == MAP_FAILED) ::_exit(1);
  page = static_cast<volatile char*>(mapped);
  ::_exit(*page == 0 ? 1 : 2);
}

}  // namespace faults

/// Whether the signal of a fault gives its address. QEMU 7.2 swaps its bytes when it emulates a machine of
/// the other byte order; nothing can be guarded there. Only such machines are probed: on others the tests
/// must pass.
[[nodiscard]] inline bool faults_have_addresses() {
  if constexpr (std::endian::native == std::endian::little) return true;
  static const bool they_have = [] {
    const pid_t child = ::fork();
    if (child == 0) faults::touch_lost_page();
    int status = 1;
    return child > 0 && ::waitpid(child, &status, 0) == child && status == 0;
  }();
  if (!they_have)
    WARN("this machine's faults do not give their address: mapped files that shrink are not tested");
  return they_have;
}

}  // namespace penstock_test
