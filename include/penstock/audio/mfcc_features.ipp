// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/audio/mfcc_features.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace penstock::inline v0_1 {

namespace detail {

/// Throws `errc::argument`, with a sentence about the option that is wrong.
inline void check_mfcc(const mfcc_options& o) {
  check_log_mel(o.mel);
  if (o.n_mfcc < 1 || o.n_mfcc > o.mel.n_mels)
    throw error(errc::argument, {"mfcc features: n_mfcc is from 1 to the number of mels, which is ",
                                 std::uint64_t{o.mel.n_mels}});
  if (!(o.lifter >= 0 && std::isfinite(o.lifter)))
    throw error(errc::argument, "mfcc features: lifter is a number from 0, as in .lifter = 22");
}

[[nodiscard]] inline log_mel_options with_frames_first(log_mel_options options) noexcept {
  options.mels_first = false;
  return options;
}

/// For each mel, its factor of each coefficient.
[[nodiscard]] inline std::vector<float> cosine_transform(const mfcc_options& o) {
  const double mels = o.mel.n_mels;
  std::vector<float> made;
  made.reserve(std::size_t{o.mel.n_mels} * o.n_mfcc);
  for (std::uint32_t m = 0; m < o.mel.n_mels; ++m)
    for (std::uint32_t i = 0; i < o.n_mfcc; ++i) {
      const double lifted = o.lifter == 0 ? 1 : 1 + o.lifter / 2 * std::sin(std::numbers::pi * i / o.lifter);
      made.push_back(static_cast<float>(lifted * std::sqrt((i == 0 ? 1 : 2) / mels) *
                                        std::cos(std::numbers::pi / mels * (m + 0.5) * i)));
    }
  return made;
}

}  // namespace detail

PENSTOCK_INLINE mfcc_features::mfcc_features(const mfcc_options& options)
    : options_((detail::check_mfcc(options), options)),
      mel_(detail::with_frames_first(options.mel)),
      transform_(std::make_shared<const std::vector<float>>(detail::cosine_transform(options))) {}

PENSTOCK_INLINE void mfcc_features::operator()(std::span<const float> samples, std::span<float> into,
                                               scratch& memory) const {
  const extents wanted = shape(samples.size());
  if (into.size() != wanted.elements()) [[unlikely]]
    throw error(errc::shape, {"a sound of ", samples.size(), " samples has coefficients of the shape ",
                              to_string(wanted), ", and there is room for ", into.size(), " values"});
  if (into.empty()) return;
  const std::size_t mels = options_.mel.n_mels, coefficients = options_.n_mfcc;
  const std::size_t count = detail::to_size(frames(samples.size()));
  // A row more, for coefficients that are not next to each other in their place.
  memory.features.resize_for_overwrite((count * mels + coefficients) * sizeof(float));
  float* const features = reinterpret_cast<float*>(memory.features.data());
  float* const sums = features + count * mels;
  mel_(samples, {features, count * mels}, memory.mel);
  for (std::size_t f = 0; f < count; ++f) {
    std::fill_n(sums, coefficients, 0.0f);
    const float* factor = transform_->data();
    for (std::size_t m = 0; m < mels; ++m, factor += coefficients) {
      const float value = features[f * mels + m];
      for (std::size_t i = 0; i < coefficients; ++i) sums[i] += value * factor[i];
    }
    for (std::size_t i = 0; i < coefficients; ++i)
      into[options_.mel.mels_first ? i * count + f : f * coefficients + i] = sums[i];
  }
}

}  // namespace penstock::inline v0_1
