// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/detail/allocation_pool.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

namespace penstock::inline v0_1::detail {

/// What stands before the memory of a block.
struct alignas(std::max_align_t) allocation_pool::block {
  block* next;
  std::size_t size_class;  // the memory has 64 << size_class bytes

  [[nodiscard]] std::size_t size() const noexcept { return std::size_t{64} << size_class; }
};

PENSTOCK_INLINE allocation_pool::~allocation_pool() {
  for (block*& list : free_)
    while (list != nullptr) {
      block* const next = list->next;
      ::operator delete(list);
      list = next;
    }
}

PENSTOCK_INLINE allocation_pool*& allocation_pool::current() noexcept {
  thread_local allocation_pool* memory = nullptr;
  return memory;
}

PENSTOCK_INLINE allocation_pool::scope::scope(allocation_pool& memory) noexcept
    : before_(std::exchange(current(), &memory)) {}
PENSTOCK_INLINE allocation_pool::scope::~scope() { current() = before_; }

PENSTOCK_INLINE allocation_pool::block* allocation_pool::block_of(void* memory) noexcept {
  return static_cast<block*>(memory) - 1;
}

PENSTOCK_INLINE void* allocation_pool::take(std::size_t size) noexcept {
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

PENSTOCK_INLINE void* allocation_pool::allocate(std::size_t size) noexcept { return current()->take(size); }

PENSTOCK_INLINE void* allocation_pool::allocate_zeros(std::size_t count, std::size_t size) noexcept {
  if (size != 0 && count > static_cast<std::size_t>(-1) / size) return nullptr;
  void* const memory = allocate(count * size);
  if (memory != nullptr) std::memset(memory, 0, count * size);
  return memory;
}

PENSTOCK_INLINE void* allocation_pool::reallocate(void* memory, std::size_t size) noexcept {
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

PENSTOCK_INLINE void allocation_pool::release(void* memory) noexcept {
  if (memory == nullptr) return;
  block* const freed = block_of(memory);
  block*& list = current()->free_[freed->size_class];
  freed->next = list;
  list = freed;
}

}  // namespace penstock::inline v0_1::detail
