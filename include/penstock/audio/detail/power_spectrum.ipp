// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/audio/detail/power_spectrum.hpp>

#include <cmath>
#include <numbers>
#include <type_traits>
#include <utility>

namespace penstock::inline v0_1::detail {

/// Calls f(0), f(1), ... with constants.
template <std::size_t N, class F>
[[gnu::always_inline]] inline void for_constants(const F& f) {
  [&]<std::size_t... Is>(std::index_sequence<Is...>) {
    (f(std::integral_constant<std::size_t, Is>{}), ...);
  }(std::make_index_sequence<N>{});
}

/// The transforms of so few complex numbers, real and imaginary parts in turn.
template <std::size_t Radix>
[[gnu::always_inline]] inline void transform_few(const of_frames* a, of_frames* b) noexcept;
template <>
[[gnu::always_inline]] inline void transform_few<2>(const of_frames* a, of_frames* b) noexcept {
  b[0] = a[0] + a[2], b[1] = a[1] + a[3];
  b[2] = a[0] - a[2], b[3] = a[1] - a[3];
}
template <>
[[gnu::always_inline]] inline void transform_few<3>(const of_frames* a, of_frames* b) noexcept {
  constexpr float sine = 0.86602540378443864676f;
  const of_frames sum_r = a[2] + a[4], sum_i = a[3] + a[5];
  const of_frames across_r = sine * (a[3] - a[5]), across_i = sine * (a[4] - a[2]);
  const of_frames middle_r = a[0] - 0.5f * sum_r, middle_i = a[1] - 0.5f * sum_i;
  b[0] = a[0] + sum_r, b[1] = a[1] + sum_i;
  b[2] = middle_r + across_r, b[3] = middle_i + across_i;
  b[4] = middle_r - across_r, b[5] = middle_i - across_i;
}
template <>
[[gnu::always_inline]] inline void transform_few<4>(const of_frames* a, of_frames* b) noexcept {
  const of_frames even_r = a[0] + a[4], even_i = a[1] + a[5], odd_r = a[2] + a[6], odd_i = a[3] + a[7];
  const of_frames first_r = a[0] - a[4], first_i = a[1] - a[5];
  const of_frames across_r = a[3] - a[7], across_i = a[6] - a[2];
  b[0] = even_r + odd_r, b[1] = even_i + odd_i;
  b[2] = first_r + across_r, b[3] = first_i + across_i;
  b[4] = even_r - odd_r, b[5] = even_i - odd_i;
  b[6] = first_r - across_r, b[7] = first_i - across_i;
}
template <>
[[gnu::always_inline]] inline void transform_few<5>(const of_frames* a, of_frames* b) noexcept {
  constexpr float cosine1 = 0.30901699437494742410f, cosine2 = -0.80901699437494742410f;
  constexpr float sine1 = 0.95105651629515357212f, sine2 = 0.58778525229247312917f;
  const of_frames sum1_r = a[2] + a[8], sum1_i = a[3] + a[9], sum2_r = a[4] + a[6], sum2_i = a[5] + a[7];
  const of_frames part1_r = a[3] - a[9], part1_i = a[8] - a[2];
  const of_frames part2_r = a[5] - a[7], part2_i = a[6] - a[4];
  const of_frames middle1_r = a[0] + cosine1 * sum1_r + cosine2 * sum2_r;
  const of_frames middle1_i = a[1] + cosine1 * sum1_i + cosine2 * sum2_i;
  const of_frames middle2_r = a[0] + cosine2 * sum1_r + cosine1 * sum2_r;
  const of_frames middle2_i = a[1] + cosine2 * sum1_i + cosine1 * sum2_i;
  const of_frames across1_r = sine1 * part1_r + sine2 * part2_r,
                  across1_i = sine1 * part1_i + sine2 * part2_i;
  const of_frames across2_r = sine2 * part1_r - sine1 * part2_r,
                  across2_i = sine2 * part1_i - sine1 * part2_i;
  b[0] = a[0] + sum1_r + sum2_r, b[1] = a[1] + sum1_i + sum2_i;
  b[2] = middle1_r + across1_r, b[3] = middle1_i + across1_i;
  b[4] = middle2_r + across2_r, b[5] = middle2_i + across2_i;
  b[6] = middle2_r - across2_r, b[7] = middle2_i - across2_i;
  b[8] = middle1_r - across1_r, b[9] = middle1_i - across1_i;
}

/// One pass: `turns` has `Radix` - 1 factors for each of `rest`.
template <std::size_t Radix>
void transform_pass(const of_frames* from, of_frames* into, std::size_t rest, std::size_t count,
                    const float* turns) noexcept {
  for (std::size_t j = 0; j < rest; ++j, turns += 2 * (Radix - 1)) {
    for (std::size_t q = 0; q < count; ++q) {
      of_frames a[2 * Radix], b[2 * Radix];
      for_constants<Radix>([&](auto k) {
        const of_frames* const at = from + 2 * (q + count * (j + rest * k));
        a[2 * k] = at[0], a[2 * k + 1] = at[1];
      });
      transform_few<Radix>(a, b);
      of_frames* const to = into + 2 * (q + count * Radix * j);
      to[0] = b[0], to[1] = b[1];
      for_constants<Radix - 1>([&](auto i) {
        constexpr std::size_t k = i + 1;
        const float c = turns[2 * i], s = turns[2 * i + 1];
        to[2 * count * k] = b[2 * k] * c - b[2 * k + 1] * s;
        to[2 * count * k + 1] = b[2 * k] * s + b[2 * k + 1] * c;
      });
    }
  }
}
/// A pass of any radix, computed as the transform is defined. `turns` has `radix` * `rest` factors.
inline void transform_any(const of_frames* from, of_frames* into, std::size_t radix, std::size_t rest,
                          std::size_t count, const float* turns) noexcept {
  const std::size_t whole = radix * rest;
  for (std::size_t j = 0; j < rest; ++j)
    for (std::size_t k = 0; k < radix; ++k)
      for (std::size_t q = 0; q < count; ++q) {
        of_frames r{}, i{};
        std::size_t turn = j * k % whole;
        for (std::size_t part = 0; part < radix; ++part) {
          const of_frames* const at = from + 2 * (q + count * (j + rest * part));
          const float c = turns[2 * turn], s = turns[2 * turn + 1];
          r += at[0] * c - at[1] * s;
          i += at[0] * s + at[1] * c;
          turn += rest * k;
          if (turn >= whole) turn -= whole;
        }
        of_frames* const to = into + 2 * (q + count * (radix * j + k));
        to[0] = r, to[1] = i;
      }
}

PENSTOCK_INLINE power_spectrum::power_spectrum(std::uint32_t length)
    : length_(length), points_(length % 2 == 0 ? length / 2 : length) {
  const auto turn = [this](std::uint64_t part, std::uint64_t whole) {
    const double angle =
        -2 * std::numbers::pi * static_cast<double>(part % whole) / static_cast<double>(whole);
    turns_.push_back(static_cast<float>(std::cos(angle)));
    turns_.push_back(static_cast<float>(std::sin(angle)));
  };
  std::uint32_t left = points_, count = 1;
  const auto split = [&](std::uint32_t radix) {
    const std::uint32_t rest = left / radix;
    passes_.push_back({radix, rest, count, turns_.size()});
    if (radix <= 5)
      for (std::uint32_t j = 0; j < rest; ++j)
        for (std::uint32_t k = 1; k < radix; ++k) turn(std::uint64_t{j} * k, left);
    else
      for (std::uint32_t i = 0; i < left; ++i) turn(i, left);
    left = rest;
    count *= radix;
  };
  while (left % 4 == 0) split(4);
  std::uint32_t radix = 2;
  while (left > 1) {
    if (radix > left / radix) radix = left;  // which is a prime
    if (left % radix == 0)
      split(radix);
    else
      ++radix;
  }
  last_turns_ = turns_.size();
  for (std::uint32_t k = 0; k <= points_ / 2; ++k) turn(k, length_);
}

PENSTOCK_INLINE void power_spectrum::operator()(of_frames* frames, of_frames* memory,
                                                of_frames* into) const noexcept {
  for (const pass& p : passes_) {
    const float* const turns = turns_.data() + p.turns;
    switch (p.radix) {
      case 2:
        transform_pass<2>(frames, memory, p.rest, p.count, turns);
        break;
      case 3:
        transform_pass<3>(frames, memory, p.rest, p.count, turns);
        break;
      case 4:
        transform_pass<4>(frames, memory, p.rest, p.count, turns);
        break;
      case 5:
        transform_pass<5>(frames, memory, p.rest, p.count, turns);
        break;
      default:
        transform_any(frames, memory, p.radix, p.rest, p.count, turns);
    }
    std::swap(frames, memory);
  }
  if (length_ % 2 != 0) {
    for (std::uint32_t k = 0; k < frequencies(); ++k)
      into[k] = frames[2 * k] * frames[2 * k] + frames[2 * k + 1] * frames[2 * k + 1];
    return;
  }
  const of_frames sum = frames[0] + frames[1], difference = frames[0] - frames[1];
  into[0] = sum * sum;
  into[points_] = difference * difference;
  for (std::uint32_t k = 1; k <= points_ / 2; ++k) {
    const std::uint32_t other = points_ - k;
    const of_frames ar = frames[2 * k], ai = frames[2 * k + 1];
    const of_frames br = frames[2 * other], bi = frames[2 * other + 1];
    // Twice the transforms of the even and of the odd samples.
    const of_frames even_r = ar + br, even_i = ai - bi, odd_r = ai + bi, odd_i = br - ar;
    const float c = turns_[last_turns_ + 2 * k], s = turns_[last_turns_ + 2 * k + 1];
    const of_frames turned_r = odd_r * c - odd_i * s, turned_i = odd_r * s + odd_i * c;
    const of_frames r = even_r + turned_r, i = even_i + turned_i;
    const of_frames other_r = even_r - turned_r, other_i = even_i - turned_i;
    into[k] = (r * r + i * i) * 0.25f;
    into[other] = (other_r * other_r + other_i * other_i) * 0.25f;
  }
}

}  // namespace penstock::inline v0_1::detail
