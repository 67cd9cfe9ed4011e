// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

namespace penstock::inline v0_1::detail {

/// The product or quotient `x`, rounded to `float`: keeps compilers from contracting it with a sum, where a
/// processor has an instruction for both.
inline float rounded(float x) noexcept {
#if defined(__x86_64__) && defined(__FMA__)
  __asm__("" : "+x"(x));
#elif defined(__aarch64__)
  __asm__("" : "+w"(x));
#elif !defined(__x86_64__)
  volatile float kept = x;
  x = kept;
#endif
  return x;
}

}  // namespace penstock::inline v0_1::detail
