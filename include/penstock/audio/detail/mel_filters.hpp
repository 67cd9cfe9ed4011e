// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/audio/log_mel_options.hpp>

#include <algorithm>
#include <numbers>
#include <vector>

namespace penstock::inline v0_1::detail {

/// Hertz as mels, and back. Source of the scale of Slaney: his Auditory Toolbox, version 2, 1998.
template <class Real>
[[nodiscard]] Real mel_of(Real hertz, mel_scale scale) {
  if (scale == mel_scale::kaldi) return Real{1127} * std::log(1 + hertz / 700);
  if (scale == mel_scale::htk) return Real{2595} * std::log10(1 + hertz / 700);
  const Real step = std::log(Real(6.4)) / 27;
  return hertz < 1000 ? hertz * 3 / 200 : 15 + std::log(hertz / 1000) / step;
}
/// Of the scales whose triangles are over hertz.
[[nodiscard]] inline float hertz_of(float mel, mel_scale scale) {
  if (scale == mel_scale::htk) return 700 * (std::pow(10.0f, mel / 2595) - 1);
  const float step = std::log(6.4f) / 27;
  return mel < 15 ? mel * 200 / 3 : 1000 * std::exp(step * (mel - 15));
}

/// Filters of frequencies, each a triangle: of every one only the weights that are not 0.
///
/// They are computed with `float`, as Kaldi and torchaudio do. Weights near the corners of narrow filters are
/// off by that, and the features of such filters by more than 1e-4 from theirs if ours were not.
class mel_filters {
 public:
  struct band {
    std::uint32_t first;     ///< the first frequency with a weight
    std::uint32_t from, to;  ///< its weights, by their number
  };

  explicit mel_filters(const log_mel_options& o) {
    const bool over_mels = o.scale == mel_scale::kaldi;
    const double first = mel_of(o.f_min, o.scale);
    const double last = mel_of(o.f_max == 0 ? o.sample_rate / 2 : o.f_max, o.scale);
    const auto low = static_cast<float>(first), high = static_cast<float>(last);
    const float step = over_mels ? static_cast<float>((last - first) / (o.n_mels + 1))
                                 : (high - low) / static_cast<float>(o.n_mels + 1);
    const auto corner = [&](std::uint32_t i) {
      if (over_mels) return low + step * static_cast<float>(i);
      const std::uint32_t behind = o.n_mels + 1 - i;  // torch.linspace counts from the nearer end
      return hertz_of(
          i <= behind ? low + step * static_cast<float>(i) : high - step * static_cast<float>(behind),
          o.scale);
    };
    std::vector<float> places(over_mels ? (o.n_fft + 1) / 2 : o.n_fft / 2 + 1);
    for (std::size_t k = 0; k < places.size(); ++k) {
      const auto hertz = static_cast<float>(o.sample_rate / o.n_fft * static_cast<double>(k));
      places[k] = over_mels ? mel_of(hertz, o.scale) : hertz;
    }
    bands_.reserve(o.n_mels);
    for (std::uint32_t m = 0; m < o.n_mels; ++m) {
      const float left = corner(m), centre = corner(m + 1), right = corner(m + 2);
      const float whole = o.slaney_norm ? 2 / (right - left) : 1;
      const auto begin = std::upper_bound(places.begin(), places.end(), left);
      const auto end = std::lower_bound(begin, places.end(), right);
      band made{static_cast<std::uint32_t>(begin - places.begin()), size(), size()};
      for (auto place = begin; place != end; ++place)
        weights_.push_back(whole *
                           std::min((*place - left) / (centre - left), (right - *place) / (right - centre)));
      made.to = size();
      bands_.push_back(made);
    }
  }

  [[nodiscard]] const std::vector<band>& bands() const noexcept { return bands_; }
  [[nodiscard]] const float* weights() const noexcept { return weights_.data(); }

 private:
  [[nodiscard]] std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(weights_.size()); }

  std::vector<band> bands_;
  std::vector<float> weights_;
};

/// The window of a frame.
[[nodiscard]] inline std::vector<float> window_of(const log_mel_options& o) {
  const std::uint32_t length = o.frame_length();
  const bool symmetric = o.window == frame_window::povey;
  const double turn = 2 * std::numbers::pi / (symmetric ? length - 1 : length);
  std::vector<float> made(length);
  for (std::uint32_t i = 0; i < length; ++i) {
    const double wave = std::cos(turn * i);
    double value = 1;
    if (o.window == frame_window::hann) value = 0.5 - 0.5 * wave;
    if (o.window == frame_window::hamming) value = 0.54 - 0.46 * wave;
    if (o.window == frame_window::povey) value = std::pow(0.5 - 0.5 * wave, 0.85);
    made[i] = static_cast<float>(value * o.gain);
  }
  return made;
}

}  // namespace penstock::inline v0_1::detail
