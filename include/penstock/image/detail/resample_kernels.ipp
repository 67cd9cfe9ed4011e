// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/image/detail/resample_kernels.hpp>

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

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#include <cstring>

// A sum of bytes p times weights w = 2048 * high + low is 2048 * sum(p * high) + sum(p * low): pmaddwd makes
// both sums, two taps at a time. They are those of the portable kernels, modulo 2^32, bit for bit.

namespace penstock::inline v0_1::detail {

[[gnu::target("avx2"), gnu::always_inline]] inline __m256i two_weights(const std::int16_t* at) {
  std::int32_t both;
  std::memcpy(&both, at, sizeof(both));
  return _mm256_set1_epi32(both);
}
[[gnu::target("avx2"), gnu::always_inline]] inline __m256i two_rows(const std::uint8_t* a,
                                                                    const std::uint8_t* b) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(a))),
                                 _mm_loadu_si128(reinterpret_cast<const __m128i*>(b)), 1);
}
[[gnu::target("avx2"), gnu::always_inline]] inline __m256i joined(__m256i high, __m256i low) {
  return _mm256_srai_epi32(_mm256_add_epi32(_mm256_slli_epi32(high, low_weight_bits), low), weight_bits);
}
/// Four times 4 sums per lane become 16 bytes per lane.
[[gnu::target("avx2"), gnu::always_inline]] inline __m256i as_bytes(__m256i a, __m256i b, __m256i c,
                                                                    __m256i d) {
  return _mm256_packus_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
}

/// From pixels in a row, channel by channel, the values of pixels 2p and 2p + 1 as words; 0 for those that
/// are not in the lane.
template <std::size_t Channels>
[[gnu::target("avx2"), gnu::always_inline]] inline __m256i pair_order(int p) {
  const auto at = [p](int tap, int channel) {
    const int byte = (2 * p + tap) * int{Channels} + channel;
    return static_cast<char>(channel < int{Channels} && byte < 16 ? byte : -1);
  };
  return _mm256_broadcastsi128_si256(_mm_setr_epi8(at(0, 0), -1, at(1, 0), -1, at(0, 1), -1, at(1, 1), -1,
                                                   at(0, 2), -1, at(1, 2), -1, at(0, 3), -1, at(1, 3), -1));
}

/// The sums of one pixel of two rows, a row in each lane.
struct split_sums {
  __m256i high, low;
};
[[gnu::target("avx2"), gnu::always_inline]] inline void add_pair(split_sums& sums, __m256i taps,
                                                                 const std::int16_t* highs,
                                                                 const std::int16_t* lows) {
  sums.high = _mm256_add_epi32(sums.high, _mm256_madd_epi16(taps, two_weights(highs)));
  sums.low = _mm256_add_epi32(sums.low, _mm256_madd_epi16(taps, two_weights(lows)));
}

/// Pixel `x` of both rows, as 4 sums per lane. `Pairs` of taps, which are in 16 bytes; or as many as the
/// table has, if it is 0. Without a loop, because GCC at -O2 does not unroll it.
template <std::size_t Channels, std::size_t Pairs>
[[gnu::target("avx2"), gnu::always_inline]] inline __m256i pixel_sums(const std::uint8_t* a,
                                                                      const std::uint8_t* b,
                                                                      const weight_table& table,
                                                                      std::size_t x, __m256i first,
                                                                      __m256i second, __m256i third) {
  const std::size_t pairs = Pairs != 0 ? Pairs : table.taps / 2;
  const std::size_t at = static_cast<std::size_t>(table.start[x]) * Channels;
  const std::int16_t* const highs = table.high + x * pairs * 2;
  const std::int16_t* const lows = table.low + x * pairs * 2;
  split_sums sums{_mm256_setzero_si256(), _mm256_set1_epi32(half_weight)};
  a += at;
  b += at;
  if constexpr (Pairs != 0) {
    const __m256i bytes = two_rows(a, b);
    add_pair(sums, _mm256_shuffle_epi8(bytes, first), highs, lows);
    if constexpr (Pairs >= 2) add_pair(sums, _mm256_shuffle_epi8(bytes, second), highs + 2, lows + 2);
    if constexpr (Pairs >= 3) add_pair(sums, _mm256_shuffle_epi8(bytes, third), highs + 4, lows + 4);
  } else {
    std::size_t p = 0;
    for (; p + 2 <= pairs; p += 2, a += 4 * Channels, b += 4 * Channels) {
      const __m256i bytes = two_rows(a, b);
      add_pair(sums, _mm256_shuffle_epi8(bytes, first), highs + 2 * p, lows + 2 * p);
      add_pair(sums, _mm256_shuffle_epi8(bytes, second), highs + 2 * p + 2, lows + 2 * p + 2);
    }
    if (p != pairs) add_pair(sums, _mm256_shuffle_epi8(two_rows(a, b), first), highs + 2 * p, lows + 2 * p);
  }
  return joined(sums.high, sums.low);
}

template <std::size_t Channels, std::size_t Pairs>
[[gnu::target("avx2")]] void across_colours_avx2(const std::uint8_t* a, const std::uint8_t* b,
                                                 const weight_table& table, std::uint8_t* a_out,
                                                 std::uint8_t* b_out) {
  const __m256i first = pair_order<Channels>(0), second = pair_order<Channels>(1),
                third = pair_order<Channels>(2);
  const __m256i dense =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
  for (std::size_t x = 0; x < table.count; x += 4) {
    __m256i bytes = as_bytes(pixel_sums<Channels, Pairs>(a, b, table, x, first, second, third),
                             pixel_sums<Channels, Pairs>(a, b, table, x + 1, first, second, third),
                             pixel_sums<Channels, Pairs>(a, b, table, x + 2, first, second, third),
                             pixel_sums<Channels, Pairs>(a, b, table, x + 3, first, second, third));
    if (Channels == 3) bytes = _mm256_shuffle_epi8(bytes, dense);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(a_out + x * Channels), _mm256_castsi256_si128(bytes));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(b_out + x * Channels), _mm256_extracti128_si256(bytes, 1));
  }
}

/// Pixel `x` of both rows, as 4 parts of a sum per lane.
[[gnu::target("avx2"), gnu::always_inline]] inline __m256i gray_sums(const std::uint8_t* a,
                                                                     const std::uint8_t* b,
                                                                     const weight_table& table,
                                                                     std::size_t x) {
  const std::size_t at = static_cast<std::size_t>(table.start[x]);
  __m256i high = _mm256_setzero_si256(), low = high;
  for (std::size_t t = 0; t < table.taps; t += 8) {
    const __m128i both = _mm_unpacklo_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(a + at + t)),
                                            _mm_loadl_epi64(reinterpret_cast<const __m128i*>(b + at + t)));
    const __m256i taps = _mm256_cvtepu8_epi16(both);
    const auto weights = [&](const std::int16_t* all) {
      return reinterpret_cast<const __m128i*>(all + x * table.taps + t);
    };
    high = _mm256_add_epi32(
        high, _mm256_madd_epi16(taps, _mm256_broadcastsi128_si256(_mm_loadu_si128(weights(table.high)))));
    low = _mm256_add_epi32(
        low, _mm256_madd_epi16(taps, _mm256_broadcastsi128_si256(_mm_loadu_si128(weights(table.low)))));
  }
  return _mm256_add_epi32(_mm256_slli_epi32(high, low_weight_bits), low);
}

[[gnu::target("avx2")]] PENSTOCK_INLINE void across_gray_avx2(const std::uint8_t* a, const std::uint8_t* b,
                                                              const weight_table& table, std::uint8_t* a_out,
                                                              std::uint8_t* b_out) {
  const __m256i half = _mm256_set1_epi32(half_weight);
  for (std::size_t x = 0; x < table.count; x += 4) {
    const __m256i sums =
        _mm256_hadd_epi32(_mm256_hadd_epi32(gray_sums(a, b, table, x), gray_sums(a, b, table, x + 1)),
                          _mm256_hadd_epi32(gray_sums(a, b, table, x + 2), gray_sums(a, b, table, x + 3)));
    const __m256i values = _mm256_srai_epi32(_mm256_add_epi32(sums, half), weight_bits);
    const __m256i bytes = as_bytes(values, values, values, values);
    const std::int32_t first = _mm256_extract_epi32(bytes, 0), second = _mm256_extract_epi32(bytes, 4);
    std::memcpy(a_out + x, &first, 4);
    std::memcpy(b_out + x, &second, 4);
  }
}

PENSTOCK_INLINE void across_avx2(std::size_t channels, const std::uint8_t* first, const std::uint8_t* second,
                                 const weight_table& table, std::uint8_t* first_out,
                                 std::uint8_t* second_out) {
  const bool in_16_bytes = table.maximum * channels <= 16;
  const auto with = [&](auto one, auto two, auto three, auto any) {
    const auto kernel = !in_16_bytes ? any : table.taps == 2 ? one : table.taps == 4 ? two : three;
    kernel(first, second, table, first_out, second_out);
  };
  if (channels == 1)
    across_gray_avx2(first, second, table, first_out, second_out);
  else if (channels == 3)
    with(across_colours_avx2<3, 1>, across_colours_avx2<3, 2>, across_colours_avx2<3, 3>,
         across_colours_avx2<3, 0>);
  else
    with(across_colours_avx2<4, 1>, across_colours_avx2<4, 2>, across_colours_avx2<4, 2>,
         across_colours_avx2<4, 0>);
}

[[gnu::target("avx2")]] PENSTOCK_INLINE void down_avx2(const resample_rows& rows, const weight_table& table,
                                                       std::uint32_t y, std::size_t bytes,
                                                       std::uint8_t* out) {
  if (bytes < 32) return portable_kernels().down(rows, table, y, bytes, out);
  const auto start = static_cast<std::size_t>(table.start[y]);
  const std::int16_t* const highs = table.high + std::size_t{y} * table.taps;
  const std::int16_t* const lows = table.low + std::size_t{y} * table.taps;
  const auto used = static_cast<std::size_t>(table.used[y]);
  const __m256i zero = _mm256_setzero_si256(), half = _mm256_set1_epi32(half_weight);
  for (std::size_t at = 0; at < bytes; at += 32) {
    if (at + 32 > bytes) at = bytes - 32;  // again a few that are done
    __m256i h0 = zero, h1 = zero, h2 = zero, h3 = zero, l0 = half, l1 = half, l2 = half, l3 = half;
    const std::uint8_t* row = rows.data + start * rows.pitch + at;
    for (std::size_t t = 0; t < used; t += 2, row += 2 * rows.pitch) {
      const std::uint8_t* const next = t + 1 < used ? row + rows.pitch : row;  // its weight is 0
      const __m256i p = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row));
      const __m256i q = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(next));
      const __m256i high = two_weights(highs + t), low = two_weights(lows + t);
      const __m256i left = _mm256_unpacklo_epi8(p, q), right = _mm256_unpackhi_epi8(p, q);
      const __m256i e0 = _mm256_unpacklo_epi8(left, zero), e1 = _mm256_unpackhi_epi8(left, zero);
      const __m256i e2 = _mm256_unpacklo_epi8(right, zero), e3 = _mm256_unpackhi_epi8(right, zero);
      h0 = _mm256_add_epi32(h0, _mm256_madd_epi16(e0, high));
      h1 = _mm256_add_epi32(h1, _mm256_madd_epi16(e1, high));
      h2 = _mm256_add_epi32(h2, _mm256_madd_epi16(e2, high));
      h3 = _mm256_add_epi32(h3, _mm256_madd_epi16(e3, high));
      l0 = _mm256_add_epi32(l0, _mm256_madd_epi16(e0, low));
      l1 = _mm256_add_epi32(l1, _mm256_madd_epi16(e1, low));
      l2 = _mm256_add_epi32(l2, _mm256_madd_epi16(e2, low));
      l3 = _mm256_add_epi32(l3, _mm256_madd_epi16(e3, low));
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + at),
                        as_bytes(joined(h0, l0), joined(h1, l1), joined(h2, l2), joined(h3, l3)));
  }
}

PENSTOCK_INLINE const resample_kernels* avx2_kernels() {
  static constexpr resample_kernels kernels{"avx2", across_avx2, down_avx2, true};
  return __builtin_cpu_supports("avx2") ? &kernels : nullptr;
}

}  // namespace penstock::inline v0_1::detail

#else

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE const resample_kernels* avx2_kernels() { return nullptr; }

}  // namespace penstock::inline v0_1::detail

#endif
