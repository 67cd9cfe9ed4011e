// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<spng.h>)
#error "penstock/codec/detail/spng_memory.hpp needs libspng: link penstock::png"
#endif

#include <penstock/base/owned.hpp>
#include <penstock/core/cpp20.hpp>

#include <spng.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <new>
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
  ~allocation_pool() {
    for (block*& list : free_)
      while (list != nullptr) {
        block* const next = list->next;
        ::operator delete(list);
        list = next;
      }
  }

  /// Uses this memory in this thread while the scope lasts.
  class scope : unmovable {
   public:
    explicit scope(allocation_pool& memory) noexcept : before_(std::exchange(current(), &memory)) {}
    ~scope() { current() = before_; }

   private:
    allocation_pool* before_;
  };

  /// Whether an allocation has failed since the last `forget_failure`: the libraries do not always say so.
  [[nodiscard]] bool failed() const noexcept { return failed_; }
  void forget_failure() noexcept { failed_ = false; }

  // For the libraries, within a scope: as those of the C library, for any size.
  [[nodiscard]] static void* allocate(std::size_t size) noexcept { return current()->take(size); }
  [[nodiscard]] static void* allocate_zeros(std::size_t count, std::size_t size) noexcept {
    if (size != 0 && count > static_cast<std::size_t>(-1) / size) return nullptr;
    void* const memory = allocate(count * size);
    if (memory != nullptr) std::memset(memory, 0, count * size);
    return memory;
  }
  [[nodiscard]] static void* reallocate(void* memory, std::size_t size) noexcept {
    if (memory == nullptr) return allocate(size);
    const std::size_t has = block_of(memory)->size();
    if (size <= has) return memory;
    void* const moved = allocate(size);
    if (moved != nullptr) {
      std::memcpy(moved, memory, has);
      release(memory);
    }
    return moved;
  }
  static void release(void* memory) noexcept {
    if (memory == nullptr) return;
    block* const freed = block_of(memory);
    block*& list = current()->free_[freed->size_class];
    freed->next = list;
    list = freed;
  }

 private:
  /// What stands before the memory of a block.
  struct alignas(std::max_align_t) block {
    block* next;
    std::size_t size_class;  // the memory has 64 << size_class bytes

    [[nodiscard]] std::size_t size() const noexcept { return std::size_t{64} << size_class; }
  };

  static constexpr std::size_t classes = 48;
  [[nodiscard]] static allocation_pool*& current() noexcept {
    thread_local allocation_pool* memory = nullptr;
    return memory;
  }
  [[nodiscard]] static block* block_of(void* memory) noexcept { return static_cast<block*>(memory) - 1; }
  [[nodiscard]] void* take(std::size_t size) noexcept {
    const std::size_t size_class = std::bit_width((std::max<std::size_t>(size, 1) - 1) >> 6);
    if (size_class >= classes) {
      failed_ = true;
      return nullptr;
    }
    if (block* const kept = free_[size_class]; kept != nullptr) {
      free_[size_class] = kept->next;
      return kept + 1;
    }
    void* const fresh = ::operator new(sizeof(block) + (std::size_t{64} << size_class), std::nothrow);
    if (fresh == nullptr) {
      failed_ = true;
      return nullptr;
    }
    return new (fresh) block{nullptr, size_class} + 1;
  }

  std::array<block*, classes> free_{};
  bool failed_ = false;
};

using spng_context = std::unique_ptr<spng_ctx, freed_by<spng_ctx_free>>;

/// A context whose memory, and that of zlib behind it, is the thread's `allocation_pool`: only within a
/// scope.
[[nodiscard]] inline spng_context new_spng(int flags) {
  spng_alloc functions{allocation_pool::allocate, allocation_pool::reallocate,
                       allocation_pool::allocate_zeros, allocation_pool::release};
  spng_context context(spng_ctx_new2(&functions, flags));
  if (!context) throw std::bad_alloc();
  return context;
}

}  // namespace penstock::inline v0_1::detail
