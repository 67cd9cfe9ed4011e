// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/image/detail/resample_weights.hpp>

/// The inner loops of the resampler, in portable C++.
namespace penstock::inline v0_1::detail {

struct resample_rows {
  const std::uint8_t* data = nullptr;
  std::size_t pitch = 0;
  std::size_t count = 0;
};

struct resample_kernels {
  std::string_view name;
  /// Two rows of the source become two rows of `table.count` pixels, and up to 16 bytes more. Reads up to
  /// `reads_beyond` bytes beyond the row's end if `reads_more`. The second may be the first.
  void (*across)(std::size_t channels, const std::uint8_t* first, const std::uint8_t* second,
                 const weight_table& table, std::uint8_t* first_out, std::uint8_t* second_out);
  /// Row `y` of the result, of `bytes` bytes.
  void (*down)(const resample_rows& rows, const weight_table& table, std::uint32_t y, std::size_t bytes,
               std::uint8_t* out);
  bool reads_more = false;
};

[[nodiscard]] const resample_kernels& portable_kernels();

/// How many bytes beyond the end of a row a kernel may read.
[[nodiscard]] inline std::size_t reads_beyond(const weight_table& table, std::size_t channels) {
  return table.taps * channels + 16;
}

/// All rows of the source, `row_bytes` each, to rows of `table.count` pixels. `spare` has room for two rows
/// of `spare_pitch` bytes: for the last ones, beyond whose end nothing may be read.
void across_rows(const resample_kernels& kernels, std::size_t channels, const resample_rows& rows,
                 std::size_t row_bytes, const weight_table& table, std::uint8_t* out, std::size_t out_pitch,
                 std::uint8_t* spare, std::size_t spare_pitch);

/// For processors with AVX2, whose bytes are those of the portable ones. Null if this processor has no AVX2.
[[nodiscard]] const resample_kernels* avx2_kernels();

[[nodiscard]] inline const resample_kernels& best_kernels() {
  const resample_kernels* const wide = avx2_kernels();
  return wide != nullptr ? *wide : portable_kernels();
}

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/image/detail/resample_kernels.ipp>
#endif
