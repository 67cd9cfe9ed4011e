// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/device/components.hpp>
#include <penstock/device/concepts.hpp>

#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace penstock::inline v0_1 {

/// The host as the device where batches end up: nothing is copied, and a batch is used in the slots it was
/// written to.
struct host {
  class session {
   public:
    static constexpr bool copies = false;
    struct transfer {};

    /// Memory at a multiple of 64. For 4 MiB and more, Linux is asked for huge pages, as NumPy asks for its
    /// arrays: a slot's first batch then waits for 500 times fewer page faults. They come where
    /// /sys/kernel/mm/transparent_hugepage/enabled says `madvise` or `always`.
    [[nodiscard]] void* allocate(std::size_t bytes) {
      const std::align_val_t alignment = alignment_of(bytes);
      void* const memory = ::operator new(bytes, alignment);
#if defined(__linux__)
      // A refusal leaves memory in small pages.
      if (alignment == std::align_val_t{huge_page})
        ::madvise(memory, bytes / huge_page * huge_page, MADV_HUGEPAGE);
#endif
      return memory;
    }
    void deallocate(void* p, std::size_t bytes) noexcept { ::operator delete(p, alignment_of(bytes)); }
    void start(transfer&, std::span<const bytes_view>) {}
    void wait(transfer&) {}
    [[nodiscard]] const void* data(transfer&, std::size_t) { return nullptr; }

   private:
    static constexpr std::size_t huge_page = std::size_t{2} << 20;
    static constexpr std::align_val_t alignment_of(std::size_t bytes) noexcept {
      return std::align_val_t{bytes >= 2 * huge_page ? huge_page : 64};
    }
  };

  [[nodiscard]] session connect() const { return {}; }
  [[nodiscard]] std::string describe() const { return "host"; }
};

}  // namespace penstock::inline v0_1
