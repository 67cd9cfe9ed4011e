// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/image/detail/resample_kernels.hpp>

#include <algorithm>
#include <cstring>

namespace penstock::inline v0_1::detail {

/// A sum of weighted bytes, as a byte. The sum contains the half already.
[[nodiscard]] inline std::uint8_t clipped_byte(std::int32_t sum) noexcept {
  const std::int32_t value = sum >> weight_bits;
  return static_cast<std::uint8_t>(value < 0 ? 0 : value > 255 ? 255 : value);
}

/// Two rows at a time, and a sum for each channel in a variable of its own: GCC at -O2 would keep an array of
/// them in memory.
template <std::size_t Channels>
void across_portable(const std::uint8_t* a, const std::uint8_t* b, const weight_table& table,
                     std::uint8_t* a_out, std::uint8_t* b_out) {
  for (std::size_t x = 0; x < table.count; ++x) {
    const std::size_t at = static_cast<std::size_t>(table.start[x]) * Channels;
    const std::uint8_t* p = a + at;
    const std::uint8_t* q = b + at;
    const std::int32_t* const weights = table.weight + x * table.taps;
    const std::int32_t used = table.used[x];
    std::int32_t p0 = half_weight, p1 = p0, p2 = p0, p3 = p0, q0 = p0, q1 = p0, q2 = p0, q3 = p0;
    for (std::int32_t t = 0; t < used; ++t, p += Channels, q += Channels) {
      const std::int32_t weight = weights[t];
      p0 += p[0] * weight;
      q0 += q[0] * weight;
      if constexpr (Channels >= 3) {
        p1 += p[1] * weight;
        p2 += p[2] * weight;
        q1 += q[1] * weight;
        q2 += q[2] * weight;
      }
      if constexpr (Channels == 4) {
        p3 += p[3] * weight;
        q3 += q[3] * weight;
      }
    }
    const std::size_t to = x * Channels;
    a_out[to] = clipped_byte(p0);
    b_out[to] = clipped_byte(q0);
    if constexpr (Channels >= 3) {
      a_out[to + 1] = clipped_byte(p1);
      a_out[to + 2] = clipped_byte(p2);
      b_out[to + 1] = clipped_byte(q1);
      b_out[to + 2] = clipped_byte(q2);
    }
    if constexpr (Channels == 4) {
      a_out[to + 3] = clipped_byte(p3);
      b_out[to + 3] = clipped_byte(q3);
    }
  }
}

PENSTOCK_INLINE void across_portable_rows(std::size_t channels, const std::uint8_t* first,
                                          const std::uint8_t* second, const weight_table& table,
                                          std::uint8_t* first_out, std::uint8_t* second_out) {
  const auto kernel = channels == 1   ? across_portable<1>
                      : channels == 3 ? across_portable<3>
                                      : across_portable<4>;
  kernel(first, second, table, first_out, second_out);
}

/// Blocks of a constant length, so that compilers vectorise the loops at -O2.
PENSTOCK_INLINE void down_portable(const resample_rows& rows, const weight_table& table, std::uint32_t y,
                                   std::size_t bytes, std::uint8_t* out) {
  constexpr std::size_t block = 64;
  const std::uint8_t* const from = rows.data + static_cast<std::size_t>(table.start[y]) * rows.pitch;
  const std::int32_t* const weights = table.weight + std::size_t{y} * table.taps;
  std::int32_t sums[block];
  for (std::size_t at = 0; at < bytes; at += block) {
    for (std::int32_t& sum : sums) sum = half_weight;
    if (at + block <= bytes) {
      for (std::int32_t t = 0; t < table.used[y]; ++t) {
        const std::uint8_t* const row = from + static_cast<std::size_t>(t) * rows.pitch + at;
        const std::int32_t weight = weights[t];
        for (std::size_t i = 0; i < block; ++i) sums[i] += row[i] * weight;
      }
      for (std::size_t i = 0; i < block; ++i) out[at + i] = clipped_byte(sums[i]);
    } else {
      for (std::int32_t t = 0; t < table.used[y]; ++t) {
        const std::uint8_t* const row = from + static_cast<std::size_t>(t) * rows.pitch + at;
        for (std::size_t i = 0; i < bytes - at; ++i) sums[i] += row[i] * weights[t];
      }
      for (std::size_t i = 0; i < bytes - at; ++i) out[at + i] = clipped_byte(sums[i]);
    }
  }
}

PENSTOCK_INLINE const resample_kernels& portable_kernels() {
  static constexpr resample_kernels kernels{"portable", across_portable_rows, down_portable, false};
  return kernels;
}

PENSTOCK_INLINE void across_rows(const resample_kernels& kernels, std::size_t channels,
                                 const resample_rows& rows, std::size_t row_bytes, const weight_table& table,
                                 std::uint8_t* out, std::size_t out_pitch, std::uint8_t* spare,
                                 std::size_t spare_pitch) {
  const std::size_t beyond = kernels.reads_more ? reads_beyond(table, channels) : 0;
  // A kernel may read what follows a row, in the rows below it; the last rows are copied.
  const auto safe = [&](std::size_t y, std::uint8_t* room) {
    const std::uint8_t* const row = rows.data + y * rows.pitch;
    if ((rows.count - 1 - y) * rows.pitch >= beyond) return row;
    std::memcpy(room, row, row_bytes);
    std::memset(room + row_bytes, 0, spare_pitch - row_bytes);
    return static_cast<const std::uint8_t*>(room);
  };
  for (std::size_t y = 0; y < rows.count; y += 2) {
    const std::uint8_t* const first = safe(y, spare);
    const bool two = y + 1 < rows.count;
    const std::uint8_t* const second = two ? safe(y + 1, spare + spare_pitch) : first;
    std::uint8_t* const to = out + y * out_pitch;
    kernels.across(channels, first, second, table, to, two ? to + out_pitch : to);
  }
}

}  // namespace penstock::inline v0_1::detail
