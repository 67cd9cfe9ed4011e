// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>

#include <array>
#include <utility>

namespace penstock::inline v0_1::detail {

/// Memory for libraries in C that allocate for each image: what they free is kept for the next one, in lists
/// of blocks whose sizes are powers of two. Their functions for memory get no pointer of their own, so the
/// memory that they are to use is set for the thread, with `allocation_pool::scope`.
class allocation_pool {
 public:
  allocation_pool() = default;
  allocation_pool(allocation_pool&& other) noexcept
      : free_(std::exchange(other.free_, {})), failed_(std::exchange(other.failed_, false)) {}
  allocation_pool& operator=(allocation_pool&& other) noexcept {
    std::swap(free_, other.free_);
    std::swap(failed_, other.failed_);
    return *this;
  }
  /// All blocks must have been freed.
  ~allocation_pool();

  /// Uses this memory in this thread while the scope lasts.
  class scope {
   public:
    explicit scope(allocation_pool& memory) noexcept;
    scope(const scope&) = delete;
    scope& operator=(const scope&) = delete;
    ~scope();

   private:
    allocation_pool* before_;
  };

  /// Whether an allocation has failed since the last `forget_failure`: the libraries do not always say so.
  [[nodiscard]] bool failed() const noexcept { return failed_; }
  void forget_failure() noexcept { failed_ = false; }

  // For the libraries, within a scope: as those of the C library, for any size.
  [[nodiscard]] static void* allocate(std::size_t size) noexcept;
  [[nodiscard]] static void* allocate_zeros(std::size_t count, std::size_t size) noexcept;
  [[nodiscard]] static void* reallocate(void* memory, std::size_t size) noexcept;
  static void release(void* memory) noexcept;

 private:
  struct block;
  static constexpr std::size_t classes = 48;
  [[nodiscard]] static allocation_pool*& current() noexcept;
  [[nodiscard]] static block* block_of(void* memory) noexcept;
  [[nodiscard]] void* take(std::size_t size) noexcept;

  std::array<block*, classes> free_{};
  bool failed_ = false;
};

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/codec/detail/allocation_pool.ipp>
#endif
