// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/image/detail/resample_kernels.hpp>

/// The inner loops of the resampler for processors with AVX2. They give the bytes of the portable ones.
namespace penstock::inline v0_1::detail {

/// Null if this processor has no AVX2.
[[nodiscard]] const resample_kernels* avx2_kernels();

/// The fastest ones that this processor has.
[[nodiscard]] inline const resample_kernels& best_kernels() {
  const resample_kernels* const wide = avx2_kernels();
  return wide != nullptr ? *wide : portable_kernels();
}

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/image/detail/resample_avx2.ipp>
#endif
