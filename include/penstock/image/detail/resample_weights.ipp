// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/image/detail/resample_weights.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace penstock::inline v0_1::detail {

/// Half the width of a filter, for a scale of 1.
inline double filter_support(interpolation how) {
  return how == interpolation::bicubic ? 2.0 : how == interpolation::bilinear ? 1.0 : 0.5;
}

/// Pillow's filters.
inline double filter_weight(interpolation how, double x) {
  if (how == interpolation::area) return x > -0.5 && x <= 0.5 ? 1.0 : 0.0;
  x = x < 0 ? -x : x;
  if (how == interpolation::bilinear) return x < 1.0 ? 1.0 - x : 0.0;
  constexpr double a = -0.5;
  if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
  if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * a;
  return 0.0;
}

/// Pixels that a pixel of the result depends on, with Pillow's windows.
struct filter_window {
  double origin, scale, support, narrow;

  explicit filter_window(const resample_axis& axis) {
    origin = axis.begin;
    scale = (axis.length == 0 ? axis.from : axis.length) / axis.to;
    const double wide = scale < 1.0 ? 1.0 : scale;
    support = filter_support(axis.how) * wide;
    narrow = 1.0 / wide;
  }
  [[nodiscard]] double centre(std::uint32_t i) const { return origin + (i + 0.5) * scale; }
  [[nodiscard]] index_interval around(double centre, std::uint32_t from) const {
    const double begin = centre - support + 0.5, end = centre + support + 0.5;
    return {begin < 0 ? 0 : static_cast<std::uint32_t>(begin),
            end > from ? from : static_cast<std::uint32_t>(end)};
  }
};

/// The point of the source, in 32 bits, as PyTorch computes it; and the four or two pixels around it.
inline float fixed_point(const resample_axis& axis, std::uint32_t i) {
  const float scale = static_cast<float>(axis.from) / static_cast<float>(axis.to);
  const float at = rounded(scale * (static_cast<float>(i) + 0.5f)) - 0.5f;
  return axis.how == interpolation::bilinear && at < 0 ? 0 : at;
}

inline index_interval fixed_window(const resample_axis& axis, std::uint32_t i) {
  const auto left = static_cast<std::int64_t>(std::floor(fixed_point(axis, i)));
  const std::int64_t before = axis.how == interpolation::bicubic ? 1 : 0;
  const std::int64_t last = std::int64_t{axis.from} - 1;
  return {static_cast<std::uint32_t>(std::clamp<std::int64_t>(left - before, 0, last)),
          static_cast<std::uint32_t>(std::clamp<std::int64_t>(left + 1 + before, 0, last) + 1)};
}

inline bool has_fixed_window(const resample_axis& axis) {
  return !axis.antialias && (axis.how == interpolation::bilinear || axis.how == interpolation::bicubic);
}

PENSTOCK_INLINE std::uint32_t resample_axis::max_taps() const {
  if (how == interpolation::nearest || same()) return 1;
  if (has_fixed_window(*this)) return how == interpolation::bicubic ? 4 : 2;
  const filter_window window(*this);
  std::uint32_t maximum = 1;
  for (std::uint32_t i = 0; i < count; ++i) {
    const index_interval taps = window.around(window.centre(first + i), from);
    maximum = std::max(maximum, taps.end - taps.begin);
  }
  return maximum;
}

PENSTOCK_INLINE index_interval resample_axis::needed() const {
  const std::uint32_t last = first + count - 1;
  if (same()) return {first, first + count};
  if (how == interpolation::nearest)
    return {nearest_index(first, from, to), nearest_index(last, from, to) + 1};
  if (has_fixed_window(*this)) return {fixed_window(*this, first).begin, fixed_window(*this, last).end};
  const filter_window window(*this);
  return {window.around(window.centre(first), from).begin, window.around(window.centre(last), from).end};
}

/// The nearest integer; halves away from 0, as Pillow's.
inline std::int32_t fixed_weight(double weight) {
  const double scaled = weight * (1 << weight_bits);
  return static_cast<std::int32_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
}

/// Weights of the pixel `i`, in `weights`, for the pixels of the interval that is returned.
inline index_interval filter_weights(const resample_axis& axis, const filter_window& window, std::uint32_t i,
                                     double* exact, std::int32_t* weights) {
  const double centre = window.centre(i);
  const index_interval taps = window.around(centre, axis.from);
  double sum = 0;
  for (std::uint32_t t = taps.begin; t < taps.end; ++t) {
    const double weight = filter_weight(axis.how, (t - centre + 0.5) * window.narrow);
    exact[t - taps.begin] = weight;
    sum += weight;
  }
  for (std::uint32_t t = 0; t < taps.end - taps.begin; ++t)
    weights[t] = fixed_weight(sum != 0 ? exact[t] / sum : exact[t]);
  return taps;
}

inline index_interval fixed_weights(const resample_axis& axis, std::uint32_t i, std::int32_t* weights) {
  const index_interval taps = fixed_window(axis, i);
  const float at = fixed_point(axis, i);
  const auto left = static_cast<std::int64_t>(std::floor(at));
  const double t = static_cast<double>(at) - static_cast<double>(left);
  std::array<double, 4> around{0, 1 - t, t, 0};
  if (axis.how == interpolation::bicubic) {
    constexpr double a = -0.75;
    const auto near = [](double x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
    const auto far = [](double x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
    around = {far(t + 1), near(t), near(1 - t), far(2 - t)};
  }
  // what falls beyond an edge falls on the edge
  std::array<double, 4> kept{};
  const std::int64_t last = std::int64_t{axis.from} - 1;
  for (std::int64_t k = 0; k < 4; ++k) {
    const auto to = std::clamp<std::int64_t>(left - 1 + k, 0, last) - std::int64_t{taps.begin};
    const double weight = around[static_cast<std::size_t>(k)];
    if (weight != 0) kept[static_cast<std::size_t>(to)] += weight;
  }
  for (std::uint32_t k = 0; k < taps.end - taps.begin; ++k) weights[k] = fixed_weight(kept[k]);
  return taps;
}

/// What lies at the beginning of the tables.
struct weights_head {
  static constexpr std::uint64_t right_mark = 0x7765696768747331u;
  std::uint64_t mark = 0;
  resample_axis across, down;
  bool eights = false;
};

struct weights_room {
  std::size_t count, maximum, taps, starts, used, weights, high, low, end;

  weights_room(std::size_t begin, const resample_axis& axis, std::size_t multiple) {
    const auto round = [](std::size_t n, std::size_t to) { return (n + to - 1) / to * to; };
    count = round(axis.count, 4);
    maximum = axis.max_taps();
    taps = round(maximum, multiple);
    starts = begin;
    used = round(starts + count * 4, 64);
    weights = round(used + count * 4, 64);
    high = round(weights + count * taps * 4, 64);
    low = round(high + count * taps * 2, 64);
    end = round(low + count * taps * 2, 64);
  }
  [[nodiscard]] weight_table at(const std::byte* data, const resample_axis& axis) const {
    return {reinterpret_cast<const std::int32_t*>(data + starts),
            reinterpret_cast<const std::int32_t*>(data + used),
            reinterpret_cast<const std::int32_t*>(data + weights),
            reinterpret_cast<const std::int16_t*>(data + high),
            reinterpret_cast<const std::int16_t*>(data + low),
            axis.count,
            static_cast<std::uint32_t>(taps),
            static_cast<std::uint32_t>(maximum)};
  }
};

inline void fill_weights(std::byte* data, const weights_room& room, const resample_axis& axis,
                         double* exact) {
  auto* const starts = reinterpret_cast<std::int32_t*>(data + room.starts);
  auto* const used = reinterpret_cast<std::int32_t*>(data + room.used);
  auto* const weights = reinterpret_cast<std::int32_t*>(data + room.weights);
  auto* const high = reinterpret_cast<std::int16_t*>(data + room.high);
  auto* const low = reinterpret_cast<std::int16_t*>(data + room.low);
  std::memset(weights, 0, room.count * room.taps * sizeof(std::int32_t));
  const std::uint32_t origin = axis.needed().begin;
  const filter_window window(axis);
  const bool fixed = has_fixed_window(axis);
  for (std::uint32_t i = 0; i < axis.count; ++i) {
    std::int32_t* const here = weights + i * room.taps;
    const std::uint32_t pixel = axis.first + (axis.mirrored ? axis.count - 1 - i : i);
    index_interval taps{pixel, pixel + 1};
    if (axis.same())
      here[0] = 1 << weight_bits;
    else if (fixed)
      taps = fixed_weights(axis, pixel, here);
    else
      taps = filter_weights(axis, window, pixel, exact, here);
    starts[i] = static_cast<std::int32_t>(taps.begin - origin);
    used[i] = static_cast<std::int32_t>(taps.end - taps.begin);
  }
  for (std::size_t i = axis.count; i < room.count; ++i) {
    starts[i] = starts[axis.count - 1];
    used[i] = 0;
  }
  for (std::size_t k = 0; k < room.count * room.taps; ++k) {
    high[k] = static_cast<std::int16_t>(weights[k] >> low_weight_bits);
    low[k] = static_cast<std::int16_t>(weights[k] & ((1 << low_weight_bits) - 1));
  }
}

PENSTOCK_INLINE weight_tables weights_of(const resample_axis& across, const resample_axis& down, bool eights,
                                         buffer& room) {
  const std::size_t head = (sizeof(weights_head) + 63) / 64 * 64;
  const weights_room first(head, across, eights ? 8 : 2);
  const weights_room second(first.end, down, 2);
  const std::size_t exact = second.end;
  const std::size_t all = exact + std::max(first.taps, second.taps) * sizeof(double);
  const auto same = [&] {
    if (room.size() != all) return false;
    weights_head last;
    std::memcpy(static_cast<void*>(&last), room.data(), sizeof(last));
    return last.mark == weights_head::right_mark && last.across == across && last.down == down &&
           last.eights == eights;
  };
  if (!same()) {
    room.clear();
    room.resize_for_overwrite(all);
    std::byte* const data = room.data();
    double* const scratch = reinterpret_cast<double*>(data + exact);
    fill_weights(data, first, across, scratch);
    fill_weights(data, second, down, scratch);
    const weights_head now{weights_head::right_mark, across, down, eights};
    std::memcpy(data, static_cast<const void*>(&now), sizeof(now));
  }
  return {first.at(room.data(), across), second.at(room.data(), down)};
}

}  // namespace penstock::inline v0_1::detail
