// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/integer.hpp>
#include <penstock/codec/npy.hpp>
#include <penstock/core/random.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/fields.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

// Images of 28 x 28 with a label below 10, as pack_webdataset writes them, and a small classifier of them.

inline constexpr std::size_t pixels = 784, hidden = 128, classes = 10;

/// A multi-layer perceptron in one array, so that one loop saves it and one loop steps it.
class model {
 public:
  static constexpr std::size_t size = pixels * hidden + hidden + hidden * classes + classes;

  model() : weights_(size), velocity_(size), gradient_(size) {
    penstock::rng random(1, 0, 0, 0);
    const auto fill = [&random](float* into, std::size_t count, double inputs) {
      const double maximum = std::sqrt(6 / inputs);
      for (std::size_t i = 0; i < count; ++i) into[i] = static_cast<float>(random.uniform(-maximum, maximum));
    };
    fill(weights_.data(), pixels * hidden, pixels);
    fill(weights_.data() + pixels * hidden + hidden, hidden * classes, hidden);
  }

  /// Returns the most likely class; if given the label, also adds to the gradient.
  std::size_t look(std::span<const std::uint8_t> image, std::optional<std::size_t> label = {}) {
    const float *w1 = weights_.data(), *b1 = w1 + pixels * hidden, *w2 = b1 + hidden,
                *b2 = w2 + hidden * classes;
    float h[hidden], z[classes];
    std::copy_n(b1, hidden, h);
    for (std::size_t i = 0; i < pixels; ++i) add_scaled(h, w1 + i * hidden, brightness(image[i]));
    for (float& x : h) x = std::max(x, 0.0f);
    std::copy_n(b2, classes, z);
    for (std::size_t j = 0; j < hidden; ++j)
      for (std::size_t k = 0; k < classes; ++k) z[k] += h[j] * w2[j * classes + k];
    const auto best = static_cast<std::size_t>(std::max_element(z, z + classes) - z);
    if (!label) return best;

    float sum = 0, dh[hidden];
    const float top = z[best];
    for (float& x : z) sum += x = std::exp(x - top);
    for (float& x : z) x /= sum;
    z[*label] -= 1;
    float *g1 = gradient_.data(), *gb1 = g1 + pixels * hidden, *g2 = gb1 + hidden,
          *gb2 = g2 + hidden * classes;
    for (std::size_t j = 0; j < hidden; ++j) {
      float d = 0;
      for (std::size_t k = 0; k < classes; ++k) {
        d += z[k] * w2[j * classes + k];
        g2[j * classes + k] += h[j] * z[k];
      }
      dh[j] = h[j] > 0 ? d : 0;
    }
    for (std::size_t k = 0; k < classes; ++k) gb2[k] += z[k];
    add_scaled(gb1, dh, 1);
    for (std::size_t i = 0; i < pixels; ++i) add_scaled(g1 + i * hidden, dh, brightness(image[i]));
    return best;
  }

  void step(float rate, std::size_t samples) {
    const float scale = 1.0f / static_cast<float>(samples);
    for (std::size_t i = 0; i < size; ++i) {
      velocity_[i] = 0.9f * velocity_[i] - rate * scale * gradient_[i];
      weights_[i] += velocity_[i];
      gradient_[i] = 0;
    }
  }

  [[nodiscard]] std::vector<float>& weights() { return weights_; }
  [[nodiscard]] std::vector<float>& velocity() { return velocity_; }

 private:
  /// A pixel, normalised to mean 0 and deviation 1 over the training set.
  static float brightness(std::uint8_t pixel) { return (static_cast<float>(pixel) - 72.9f) / 90.0f; }
  static void add_scaled(float* into, const float* what, float by) {
    for (std::size_t j = 0; j < hidden; ++j) into[j] += by * what[j];
  }
  std::vector<float> weights_, velocity_, gradient_;
};

/// The samples of shards: a uint8 array and a label each.
template <class Source>
auto decoded(Source shards) {
  namespace ps = penstock;
  return shards | ps::decode<ps::field<"npy", ps::npy<std::uint8_t>>, ps::field<"cls", ps::integer>>;
}

/// Calls f(image, label) for each sample of a batch.
template <class Batch, class F>
void for_each_sample(const Batch& batch, F f) {
  const auto images = get<"npy">(batch);
  const auto labels = get<"cls">(batch);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (images[i].size() != pixels || labels[i] < 0 || labels[i] >= static_cast<std::int64_t>(classes))
      throw std::runtime_error("a sample is no image of 28 x 28 with a label below 10");
    f(images[i].values(), static_cast<std::size_t>(labels[i]));
  }
}
