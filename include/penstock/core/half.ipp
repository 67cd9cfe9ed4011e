// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/half.hpp>

#include <cstring>

namespace penstock::inline v0_1 {

namespace detail {

/// Converts blocks of a length that the compiler knows, which GCC 12 wants for vector code at -O2.
template <class From, class To>
void convert_blocks(const From* __restrict input, To* __restrict to, std::size_t count) noexcept {
  constexpr std::size_t block = 16;
  std::size_t i = 0;
  for (; i + block <= count; i += block)
    for (std::size_t k = 0; k < block; ++k) to[i + k] = To(input[i + k]);
  for (; i < count; ++i) to[i] = To(input[i]);
}

PENSTOCK_INLINE void convert_portably(const float* input, half* to, std::size_t count) noexcept {
  convert_blocks(input, to, count);
}
PENSTOCK_INLINE void convert_portably(const half* input, float* to, std::size_t count) noexcept {
  convert_blocks(input, to, count);
}

#ifdef __x86_64__

// Vectors as the compilers themselves know them, and instructions by name: the header of intrinsics takes
// longer to compile than all of this library's images, and compilers rename what stands behind it.
using floats8 [[gnu::vector_size(32)]] = float;
using shorts8 [[gnu::vector_size(16)]] = short;

__attribute__((target("avx2,f16c"))) inline std::size_t convert_avx2(const float* input, half* to,
                                                                     std::size_t count) noexcept {
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    floats8 values;
    std::memcpy(&values, input + i, sizeof values);
    shorts8 halves;
    __asm__("vcvtps2ph $0, %1, %0" : "=x"(halves) : "x"(values));  // 0: to the nearest, ties to even
    std::memcpy(static_cast<void*>(to + i), &halves, sizeof halves);
  }
  return i;
}
__attribute__((target("avx2,f16c"))) inline std::size_t convert_avx2(const half* input, float* to,
                                                                     std::size_t count) noexcept {
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    shorts8 halves;
    std::memcpy(&halves, input + i, sizeof halves);
    floats8 values;
    __asm__("vcvtph2ps %1, %0" : "=x"(values) : "x"(halves));
    std::memcpy(to + i, &values, sizeof values);
  }
  return i;
}

PENSTOCK_INLINE bool has_avx2() noexcept {
  static const bool has = [] {
    unsigned a = 1, c = 0;
    __asm__("cpuid" : "+a"(a), "+c"(c) : : "ebx", "edx");
    const bool f16c = (c >> 29 & 1) != 0;  // which Clang 16 has no name for below
    __builtin_cpu_init();
    return f16c && __builtin_cpu_supports("avx2") != 0;
  }();
  return has;
}

#else

template <class From, class To>
std::size_t convert_avx2(const From*, To*, std::size_t) noexcept {
  return 0;
}
PENSTOCK_INLINE bool has_avx2() noexcept { return false; }

#endif

}  // namespace detail

PENSTOCK_INLINE void convert(const float* input, half* to, std::size_t count) noexcept {
  const std::size_t done = detail::has_avx2() ? detail::convert_avx2(input, to, count) : 0;
  detail::convert_portably(input + done, to + done, count - done);
}
PENSTOCK_INLINE void convert(const half* input, float* to, std::size_t count) noexcept {
  const std::size_t done = detail::has_avx2() ? detail::convert_avx2(input, to, count) : 0;
  detail::convert_portably(input + done, to + done, count - done);
}
PENSTOCK_INLINE void convert(const float* input, bfloat16* to, std::size_t count) noexcept {
  detail::convert_blocks(input, to, count);
}
PENSTOCK_INLINE void convert(const bfloat16* input, float* to, std::size_t count) noexcept {
  detail::convert_blocks(input, to, count);
}

}  // namespace penstock::inline v0_1
