// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// What other libraries make of sounds: the cases of tools/audio_oracles.py.
namespace penstock_test {

struct feature_case {
  std::string_view options;
  std::size_t samples;
  std::uint32_t seed;
  std::size_t rows, columns;
  std::string_view values;

  [[nodiscard]] std::vector<float> expected() const {
    std::vector<float> made;
    for (std::size_t i = 0; i < values.size(); i += 8) {
      const std::string word(values.substr(i, 8));
      const auto bits = static_cast<std::uint32_t>(std::strtoul(word.c_str(), nullptr, 16));
      float value = 0;
      std::memcpy(&value, &bits, sizeof value);
      made.push_back(value);
    }
    return made;
  }
};

inline const feature_case feature_cases[] = {
#include "audio/oracles/features.inc"
};

/// Three tones, and noise that is loud in places, as the script makes them.
[[nodiscard]] inline std::vector<float> made_sound(std::size_t samples, std::uint32_t seed) {
  std::vector<float> made(samples);
  for (std::size_t i = 0; i < samples; ++i) {
    seed = seed * 1664525u + 1013904223u;
    const double noise = static_cast<double>(seed >> 8) / 8388608.0 - 1, at = static_cast<double>(i);
    const double tones = 0.4 * std::sin(0.17 * at) + 0.2 * std::sin(0.49 * at + 1) + 0.1 * std::sin(1.3 * at);
    made[i] = static_cast<float>(tones + noise * (i / 500 % 3 == 1 ? 0.3 : 0.02));
  }
  return made;
}

/// The largest difference between two rows of numbers; infinity if one is no number, or missing.
[[nodiscard]] inline float largest_difference(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return INFINITY;
  float largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const float difference = std::abs(a[i] - b[i]);
    largest = difference <= largest ? largest : std::isnan(difference) ? INFINITY : difference;
  }
  return largest;
}

}  // namespace penstock_test
