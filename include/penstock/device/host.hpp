// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/device/concepts.hpp>

#include <cstddef>
#include <new>
#include <span>
#include <string>

namespace penstock::inline v0_1 {

/// The host as the device where batches end up: nothing is copied, and a batch is used in the slots it was
/// written to.
struct host {
  class session {
   public:
    static constexpr bool copies = false;
    struct transfer {};

    [[nodiscard]] void* allocate(std::size_t bytes) { return ::operator new(bytes, std::align_val_t{64}); }
    void deallocate(void* p, std::size_t /*bytes*/) noexcept { ::operator delete(p, std::align_val_t{64}); }
    void start(transfer&, std::span<const bytes_view>) {}
    void wait(transfer&) {}
    [[nodiscard]] const void* data(transfer&, std::size_t) { return nullptr; }
  };

  [[nodiscard]] session connect() const { return {}; }
  [[nodiscard]] std::string describe() const { return "host"; }
};

}  // namespace penstock::inline v0_1
