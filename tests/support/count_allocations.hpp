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

/// If not 0, the call with this number fails, counted from 1 and from now on; and then it is 0.
inline thread_local std::uint64_t failing_allocation = 0;

inline bool this_one_fails() {
  ++allocations;
  return failing_allocation != 0 && --failing_allocation == 0;
}

inline void* counted_or_null(std::size_t size, std::size_t alignment) noexcept {
  if (this_one_fails()) return nullptr;
  const std::size_t whole = (size + alignment - 1) / alignment * alignment;
  return alignment <= alignof(std::max_align_t) ? std::malloc(size == 0 ? 1 : size)
                                                : std::aligned_alloc(alignment, whole);
}
inline void* counted_new(std::size_t size, std::size_t alignment) {
  void* const memory = counted_or_null(size, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

/// Calls `attempt()` with the first allocation failing, with the second, and so on, until it needs no more;
/// each time calls `after(whole)`, with whether it came to its end. Returns how many allocations failed.
/// std::bad_alloc must be all that comes out.
template <class Attempt, class After>
std::uint64_t fail_each_allocation(Attempt&& attempt, After&& after) {
  for (std::uint64_t n = 1;; ++n) {
    bool whole = false;
    failing_allocation = n;
    try {
      attempt();
      whole = true;
    } catch (const std::bad_alloc&) {
    }
    const bool fired = failing_allocation == 0;
    failing_allocation = 0;
    after(whole);
    if (!fired) return n - 1;
  }
}

/// The allocations of one call.
template <class Call>
std::uint64_t allocations_of(Call&& call) {
  const std::uint64_t before = allocations;
  call();
  return allocations - before;
}
template <class Attempt>
std::uint64_t fail_each_allocation(Attempt&& attempt) {
  return fail_each_allocation(attempt, [](bool) {});
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
  return penstock_test::counted_or_null(size, 1);
}
[[gnu::weak]] void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return penstock_test::counted_or_null(size, 1);
}
[[gnu::weak]] void* operator new(std::size_t size, std::align_val_t alignment,
                                 const std::nothrow_t&) noexcept {
  return penstock_test::counted_or_null(size, static_cast<std::size_t>(alignment));
}
[[gnu::weak]] void* operator new[](std::size_t size, std::align_val_t alignment,
                                   const std::nothrow_t&) noexcept {
  return penstock_test::counted_or_null(size, static_cast<std::size_t>(alignment));
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
