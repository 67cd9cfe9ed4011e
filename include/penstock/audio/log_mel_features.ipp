// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/audio/log_mel_features.hpp>

#include <penstock/audio/detail/mel_filters.hpp>
#include <penstock/audio/detail/power_spectrum.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <new>
#include <numbers>
#include <vector>

namespace penstock::inline v0_1 {

namespace detail {

struct log_mel_tables {
  explicit log_mel_tables(const log_mel_options& o) : window(window_of(o)), filters(o), spectrum(o.n_fft) {}
  std::vector<float> window;
  mel_filters filters;
  power_spectrum spectrum;
};

/// Parts of a thread's memory for frames that are computed together.
struct frame_memory {
  frame_memory(const log_mel_tables& t, buffer& memory) {
    const std::size_t size = t.spectrum.size(), frequencies = t.spectrum.frequencies();
    const std::size_t vectors = 2 * size + frequencies;
    memory.resize_for_overwrite(vectors * sizeof(of_frames) + 2 * t.window.size() * sizeof(float));
    frames = reinterpret_cast<of_frames*>(memory.data());
    for (std::size_t i = 0; i < vectors; ++i) ::new (frames + i) of_frames();
    transformed = frames + size;
    powers = transformed + size;
    edge = reinterpret_cast<float*>(powers + frequencies);
    frame = edge + t.window.size();
  }
  of_frames *frames, *transformed, *powers;
  float* edge;   ///< of a frame that is not all within the sound
  float* frame;  ///< one that is ready but for its place among the others
};

/// The sample at a place that may be beyond the ends of a sound.
[[nodiscard]] inline float sample_at(std::span<const float> samples, std::int64_t at, frame_edges edges) {
  const std::int64_t place = reflected_place(at, static_cast<std::int64_t>(samples.size()), edges);
  return place < 0 ? 0 : samples[static_cast<std::size_t>(place)];
}

/// In several sums, which neither wait for each other nor lose as much as one.
[[nodiscard]] inline float mean_of(const float* from, std::size_t length) noexcept {
  std::array<float, 16> sums{};
  std::size_t i = 0;
  for (; i + sums.size() <= length; i += sums.size())
    for (std::size_t part = 0; part < sums.size(); ++part) sums[part] += from[i + part];
  float sum = 0;
  for (; i < length; ++i) sum += from[i];
  for (const float part : sums) sum += part;
  return sum / static_cast<float>(length);
}

/// The samples of a frame without their mean, with preemphasis, times the window.
inline void weigh_frame(const float* __restrict from, const std::vector<float>& window,
                        const log_mel_options& o, float* __restrict into) noexcept {
  const std::size_t length = window.size();
  const float* const weights = window.data();
  if (!o.remove_dc && o.preemphasis == 0) {
    for (std::size_t i = 0; i < length; ++i) into[i] = from[i] * weights[i];
    return;
  }
  const float mean = o.remove_dc ? mean_of(from, length) : 0;
  const auto share = static_cast<float>(o.preemphasis);
  const float first = from[0] - mean;
  into[0] = (first - share * first) * weights[0];
  for (std::size_t i = 1; i < length; ++i)
    into[i] = ((from[i] - mean) - share * (from[i - 1] - mean)) * weights[i];
}

/// Where the values of features are: of frame f and filter m at f * `frame` + m * `mel`.
struct feature_steps {
  std::size_t frame, mel;
};

/// Writes the values of some frames, and returns the largest of these and `largest`.
inline float filter_frames(const mel_filters& filters, const log_mel_options& o, const of_frames* powers,
                           std::size_t frames, float* into, feature_steps steps, float largest) noexcept {
  const auto floor = static_cast<float>(o.floor), add = static_cast<float>(o.add);
  const auto unit = static_cast<float>(o.log == mel_log::natural ? 1.0
                                       : o.log == mel_log::log10 ? 1 / std::numbers::ln10
                                                                 : 10 / std::numbers::ln10);
  const float* weight = filters.weights();
  for (const mel_filters::band& band : filters.bands()) {
    of_frames sums{};
    const of_frames* power = powers + band.first;
    for (const float* const end = filters.weights() + band.to; weight != end; ++weight, ++power)
      sums += *power * *weight;
    float* out = into;
    for (std::size_t i = 0; i < frames; ++i, out += steps.frame) {
      const float energy = sums[i] + add;
      float value = energy < floor ? floor : energy;
      if (o.log != mel_log::none) value = std::log(value) * unit;
      largest = value > largest ? value : largest;
      *out = value;
    }
    into += steps.mel;
  }
  return largest;
}

/// Limits, shifts and scales the logarithms, as the options say.
inline void finish_features(std::span<float> values, const log_mel_options& o, float largest) noexcept {
  if (o.range == 0 && o.shift == 0 && o.multiply == 1) return;
  const float least =
      o.range == 0 ? -std::numeric_limits<float>::infinity() : largest - static_cast<float>(o.range);
  const auto shift = static_cast<float>(o.shift), multiply = static_cast<float>(o.multiply);
  for (float& value : values) value = ((value < least ? least : value) + shift) * multiply;
}

}  // namespace detail

PENSTOCK_INLINE log_mel_features::log_mel_features(const log_mel_options& options)
    : options_(options),
      tables_((detail::check_log_mel(options), std::make_shared<const detail::log_mel_tables>(options))) {}

PENSTOCK_INLINE void log_mel_features::operator()(std::span<const float> samples, std::span<float> into,
                                                  scratch& memory) const {
  const log_mel_options& o = options_;
  const extents wanted = shape(samples.size());
  if (into.size() != wanted.elements()) [[unlikely]]
    throw error(errc::shape, {"a sound of ", samples.size(), " samples has features of the shape ",
                              to_string(wanted), ", and there is room for ", into.size(), " values"});
  if (into.empty()) return;
  const detail::log_mel_tables& tables = *tables_;
  const detail::frame_memory room(tables, memory.memory);
  const std::size_t length = tables.window.size(), step = tables.spectrum.step();
  const std::size_t count = detail::to_size(frames(samples.size()));
  const detail::feature_steps steps =
      o.mels_first ? detail::feature_steps{1, count} : detail::feature_steps{o.n_mels, 1};
  float largest = -std::numeric_limits<float>::infinity();
  for (std::size_t first = 0; first < count; first += detail::frames_at_once) {
    const std::size_t block = std::min(detail::frames_at_once, count - first);
    // The transform has left something behind the frames, or between their samples.
    for (std::size_t i = step == 1 ? length : 0; i < tables.spectrum.size(); ++i)
      room.frames[i] = detail::of_frames{};
    for (std::size_t i = 0; i < block; ++i) {
      const std::int64_t begin = o.frame_begin(first + i);
      const float* from = room.edge;
      if (begin >= 0 && static_cast<std::uint64_t>(begin) + length <= samples.size()) [[likely]]
        from = samples.data() + begin;
      else
        for (std::size_t k = 0; k < length; ++k)
          room.edge[k] = detail::sample_at(samples, begin + static_cast<std::int64_t>(k), o.edges);
      detail::weigh_frame(from, tables.window, o, room.frame);
      for (std::size_t k = 0; k < length; ++k) room.frames[k * step][i] = room.frame[k];
    }
    tables.spectrum(room.frames, room.transformed, room.powers);
    if (o.power == 1)
      for (std::uint32_t k = 0; k < tables.spectrum.frequencies(); ++k)
        for (std::size_t i = 0; i < detail::frames_at_once; ++i)
          room.powers[k][i] = std::sqrt(room.powers[k][i]);
    largest = detail::filter_frames(tables.filters, o, room.powers, block, into.data() + first * steps.frame,
                                    steps, largest);
  }
  detail::finish_features(into, o, largest);
}

}  // namespace penstock::inline v0_1
