// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/device/host.hpp>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace penstock::inline v0_1 {

PENSTOCK_INLINE void* host::session::allocate(std::size_t bytes) {
  const std::align_val_t alignment = alignment_of(bytes);
  void* const memory = ::operator new(bytes, alignment);
#if defined(__linux__)
  // A refusal leaves memory in small pages.
  if (alignment == std::align_val_t{huge_page})
    ::madvise(memory, bytes / huge_page * huge_page, MADV_HUGEPAGE);
#endif
  return memory;
}

}  // namespace penstock::inline v0_1
