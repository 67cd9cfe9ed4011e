// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "contact_sheet.hpp"
#include "letters.hpp"
#include "line_chart.hpp"

#include <penstock/core/tensor.hpp>
#include <penstock/image/pixels.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <span>
#include <string>
#include <string_view>

/// A picture of a sound, twice as wide as high: the waveform, as high as its largest sample, and below it its
/// logarithmic mel features, with axes in seconds and hertz. The colours are those of viridis, which get
/// lighter, for everyone, with the energy: yellow is the loudest place, dark violet 80 dB below that. What is
/// no finite number is red.
class sound_picture {
 public:
  /// The smallest height that has room for the axes.
  static constexpr std::uint32_t min_height = 64;

  explicit sound_picture(std::uint32_t height)
      : dot_(std::max(1u, height / 160)),
        left_(6 * (letters::width + 1) * dot_ + tick),
        right_(2 * height),
        wave_height_(height / 4),
        mel_top_(wave_height_ + contact_sheet::gap),
        mel_height_(height - mel_top_ - letters::height * dot_ - tick),
        paper_({right_, height}) {}

  /// `mels`: the features of these samples in decibels, (frames, mels), from 0 Hz to half the rate on the
  /// scale of HTK. The picture stays until the next one.
  [[nodiscard]] penstock::tensor_view<const std::uint8_t> draw(std::span<const float> samples,
                                                               std::uint32_t rate,
                                                               penstock::tensor_view<const float> mels) {
    paper_.fill(0, 0, {right_, mel_top_ + mel_height_ + tick + letters::height * dot_}, {255, 255, 255});
    draw_wave(samples);
    draw_mels(mels);
    draw_seconds(static_cast<double>(samples.size()) / rate);
    draw_hertz(rate / 2.0);
    return paper_.image();
  }

 private:
  using colour = contact_sheet::colour;
  static constexpr std::uint32_t tick = 4;
  static constexpr colour red{230, 0, 0};

  /// What a column of the picture shows of `count` values: at least one of them.
  struct stretch {
    std::size_t first, end;
  };
  [[nodiscard]] stretch shown_in(std::uint32_t column, std::size_t count) const {
    const std::size_t width = right_ - left_, first = column * count / width;
    return {first, std::max(first + 1, (column + 1) * count / width)};
  }

  void draw_wave(std::span<const float> samples) {
    float peak = 0;
    for (const float sample : samples)
      if (std::isfinite(sample)) peak = std::max(peak, std::abs(sample));
    paper_.fill(left_, wave_height_ / 2, {right_ - left_, 1}, {200, 200, 200});
    write_left(0, text("%.2g", peak));
    if (samples.empty()) return;
    const auto row_of = [&](float sample) {
      const float up = peak > 0 ? sample / peak : 0;
      return static_cast<std::uint32_t>(std::lround((1 - up) / 2 * static_cast<float>(wave_height_ - 1)));
    };
    for (std::uint32_t column = 0; column < right_ - left_; ++column) {
      auto [first, end] = shown_in(column, samples.size());
      if (first > 0) --first;  // so that the line has no gaps
      const auto some = samples.subspan(first, end - first);
      if (!std::all_of(some.begin(), some.end(), [](float sample) { return std::isfinite(sample); })) {
        paper_.fill(left_ + column, 0, {1, wave_height_}, red);
        continue;
      }
      const auto [low, high] = std::minmax_element(some.begin(), some.end());
      paper_.fill(left_ + column, row_of(*high), {1, row_of(*low) - row_of(*high) + 1}, {31, 97, 165});
    }
  }

  void draw_mels(penstock::tensor_view<const float> mels) {
    constexpr float shown = 80, silence = -100;  // decibels
    const std::size_t frames = mels.shape()[0], bands = mels.shape()[1];
    if (frames == 0) return;
    float loudest = silence + shown;  // so that silence is dark
    for (const float level : mels.values())
      if (std::isfinite(level)) loudest = std::max(loudest, level);
    for (std::uint32_t column = 0; column < right_ - left_; ++column) {
      const auto [first, end] = shown_in(column, frames);
      for (std::uint32_t row = 0; row < mel_height_; ++row) {
        const std::size_t band = (mel_height_ - 1 - row) * bands / mel_height_;
        float highest = -std::numeric_limits<float>::infinity();
        bool finite = true;
        for (std::size_t frame = first; frame < end; ++frame) {
          const float level = mels.data()[frame * bands + band];
          finite = finite && std::isfinite(level);
          highest = std::max(highest, level);
        }
        paper_.fill(left_ + column, mel_top_ + row, {1, 1},
                    finite ? viridis((highest - loudest) / shown + 1) : red);
      }
    }
  }

  void draw_seconds(double seconds) {
    const std::uint32_t top = mel_top_ + mel_height_;
    const double step = line_chart::step_of(seconds);
    for (std::uint32_t i = 0; i * step <= seconds; ++i) {
      const std::string label = text("%.3g s", i * step);
      const std::uint32_t x =
          left_ + static_cast<std::uint32_t>((right_ - left_ - 1) * (seconds > 0 ? i * step / seconds : 0));
      paper_.fill(x, top, {1, tick - 1}, {0, 0, 0});
      const std::uint32_t from = x - std::min(x, wide(label) / 2);
      if (from + wide(label) <= right_) paper_.write(from, top + tick, dot_, label);
    }
  }

  /// Octaves, as far as their names have room.
  void draw_hertz(double highest) {
    const auto mel = [](double hertz) { return std::log10(1 + hertz / 700); };
    std::uint32_t above = mel_top_ + mel_height_ + letters::height * dot_;
    for (double hertz = 250; hertz <= highest; hertz *= 2) {
      const auto y = mel_top_ + static_cast<std::uint32_t>((1 - mel(hertz) / mel(highest)) * mel_height_);
      const std::uint32_t y_of_text = std::max(mel_top_, y - letters::height * dot_ / 2);
      if (y_of_text + (letters::height + 1) * dot_ > above) continue;
      paper_.fill(left_ - tick + 1, y, {tick - 1, 1}, {0, 0, 0});
      write_left(y_of_text, hertz < 1000 ? text("%.0f Hz", hertz) : text("%.0f kHz", hertz / 1000));
      above = y_of_text;
    }
  }

  /// A colour of viridis; 0 is dark violet, 1 yellow.
  [[nodiscard]] static colour viridis(float level) {
    constexpr std::array<colour, 10> steps{{{68, 1, 84},
                                            {72, 40, 120},
                                            {62, 73, 137},
                                            {49, 104, 142},
                                            {38, 130, 142},
                                            {31, 158, 137},
                                            {53, 183, 121},
                                            {110, 206, 88},
                                            {181, 222, 43},
                                            {253, 231, 37}}};
    const float place = std::clamp(level, 0.0f, 1.0f) * (steps.size() - 1);
    const std::size_t step = std::min(static_cast<std::size_t>(place), steps.size() - 2);
    colour made{};
    for (std::size_t i = 0; i < made.size(); ++i)
      made[i] = static_cast<std::uint8_t>(
          std::lround(std::lerp(static_cast<float>(steps[step][i]), static_cast<float>(steps[step + 1][i]),
                                place - static_cast<float>(step))));
    return made;
  }

  [[nodiscard]] static std::string text(const char* format, double number) {
    std::array<char, 32> made{};
    std::snprintf(made.data(), made.size(), format, number);
    return made.data();
  }
  [[nodiscard]] std::uint32_t wide(std::string_view words) const {
    return static_cast<std::uint32_t>(words.size()) * (letters::width + 1) * dot_;
  }
  /// Left of the axis, and ending there.
  void write_left(std::uint32_t y, std::string_view words) {
    paper_.write(left_ - tick - std::min(left_ - tick, wide(words)), y, dot_, words);
  }

  std::uint32_t dot_, left_, right_, wave_height_, mel_top_, mel_height_;
  contact_sheet paper_;
};
