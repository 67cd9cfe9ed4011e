// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace penstock_test {

/// The number of times this thread has called operator new. Including this header replaces operator new for
/// the whole program.
inline thread_local std::uint64_t allocations = 0;

inline void* counted_new(std::size_t size, std::size_t alignment) {
  ++allocations;
  const std::size_t whole = (size + alignment - 1) / alignment * alignment;
  void* const memory = alignment <= alignof(std::max_align_t) ? std::malloc(size == 0 ? 1 : size)
                                                              : std::aligned_alloc(alignment, whole);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

/// The allocations of one call.
template <class Call>
std::uint64_t allocations_of(Call&& call) {
  const std::uint64_t before = allocations;
  call();
  return allocations - before;
}

}  // namespace penstock_test

// Weak, so that several files of one program may include this header: a replacement of operator new must not
// be inline.
[[gnu::weak]] void* operator new(std::size_t size) { return penstock_test::counted_new(size, 1); }
[[gnu::weak]] void* operator new[](std::size_t size) { return penstock_test::counted_new(size, 1); }
[[gnu::weak]] void* operator new(std::size_t size, std::align_val_t alignment) {
  return penstock_test::counted_new(size, static_cast<std::size_t>(alignment));
}
[[gnu::weak]] void* operator new[](std::size_t size, std::align_val_t alignment) {
  return penstock_test::counted_new(size, static_cast<std::size_t>(alignment));
}
// The forms that do not throw must be replaced too: their memory is freed through the operator delete below.
[[gnu::weak]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++penstock_test::allocations;
  return std::malloc(size == 0 ? 1 : size);
}
[[gnu::weak]] void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  ++penstock_test::allocations;
  return std::malloc(size == 0 ? 1 : size);
}
[[gnu::weak]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::weak]] void operator delete[](void* memory) noexcept { std::free(memory); }
[[gnu::weak]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::weak]] void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::weak]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::weak]] void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::weak]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::weak]] void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
