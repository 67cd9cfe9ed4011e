// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/message.hpp>

namespace penstock::inline v0_1 {

/// How an operation computes pixels between pixels. torchvision's `InterpolationMode`.
///   nearest    the nearest pixel: keeps the labels of a mask
///   bilinear   a triangle over 2 x 2 pixels; the default of all operations
///   bicubic    a cubic over 4 x 4 pixels; its results can be beyond those around it, and are clipped
///   area       the mean of the pixels that fall on the new one (torchvision: BOX); only where an image
///              becomes smaller or larger, not where it is turned
/// With antialias, where an image becomes smaller, the triangle and the cubic grow by the factor of the
/// reduction, so that each pixel counts.
enum class interpolation : std::uint8_t { nearest, bilinear, bicubic, area };

/// The name of an interpolation, spelled as in the enum.
[[nodiscard]] constexpr std::string_view to_string(interpolation how) noexcept {
  return detail::enum_name({"nearest", "bilinear", "bicubic", "area"}, how);
}

namespace detail {

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

}  // namespace detail

}  // namespace penstock::inline v0_1
