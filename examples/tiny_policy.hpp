// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A policy with one hidden layer: what a robot observes in, the actions of its next steps out. Plain loops in
// a fixed order, so that equal batches give equal losses, bit for bit.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <istream>
#include <ostream>
#include <span>
#include <vector>

class tiny_policy {
 public:
  /// How many numbers are observed, how many the hidden layer has, and how many are predicted.
  tiny_policy(std::size_t inputs, std::size_t width, std::size_t outputs)
      : hidden_(inputs, width), last_(width, outputs) {}

  /// What to do: `outputs` numbers.
  std::span<const float> act(std::span<const float> observed) {
    hidden_.forward(observed, middle_);
    for (float& x : middle_) x = std::tanh(x);
    last_.forward(middle_, acts_);
    return acts_;
  }
  /// One step of gradient descent towards the actions that were shown, but for those that are padding, whose
  /// weight is 0; returns the mean of the squared errors. Row after row.
  double train(std::span<const float> observed, std::span<const float> shown, std::span<const float> weights,
               float rate) {
    const std::size_t inputs = hidden_.from, outputs = last_.to, rows = observed.size() / inputs;
    double loss = 0, count = 0;
    for (const float weight : weights) count += weight;
    for (std::size_t row = 0; row < rows; ++row) {
      const auto seen = observed.subspan(row * inputs, inputs);
      static_cast<void>(act(seen));
      for (std::size_t i = 0; i < outputs; ++i) {
        const float off = acts_[i] - shown[row * outputs + i], weight = weights[row * outputs + i];
        loss += static_cast<double>(weight * off * off);
        acts_[i] = 2 * weight * off / static_cast<float>(count);
      }
      last_.backward(middle_, acts_, &back_);
      for (std::size_t i = 0; i < middle_.size(); ++i) back_[i] *= 1 - middle_[i] * middle_[i];
      hidden_.backward(seen, back_, nullptr);
    }
    hidden_.step(rate);
    last_.step(rate);
    return loss / count;
  }
  void save(std::ostream& to) const {
    for (const layer* one : {&hidden_, &last_})
      to.write(reinterpret_cast<const char*>(one->w.data()),
               static_cast<std::streamsize>(one->w.size() * sizeof(float)));
  }
  void load(std::istream& from) {
    for (layer* one : {&hidden_, &last_})
      from.read(reinterpret_cast<char*>(one->w.data()),
                static_cast<std::streamsize>(one->w.size() * sizeof(float)));
  }

 private:
  struct layer {
    layer(std::size_t inputs, std::size_t outputs)
        : from(inputs), to(outputs), w((inputs + 1) * outputs), gradient(w.size()) {
      std::uint64_t seed = 1;  // any small numbers
      for (float& one : w) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        one = (static_cast<float>(seed >> 40) / 8388608.0f - 1.0f) / std::sqrt(static_cast<float>(from));
      }
    }
    void forward(std::span<const float> x, std::vector<float>& y) const {
      y.assign(w.end() - static_cast<std::ptrdiff_t>(to), w.end());  // the bias
      for (std::size_t i = 0; i < from; ++i)
        for (std::size_t o = 0; o < to; ++o) y[o] += x[i] * w[i * to + o];
    }
    // Adds to the gradient; `dx` becomes that of x.
    void backward(std::span<const float> x, const std::vector<float>& dy, std::vector<float>* dx) {
      if (dx != nullptr) dx->assign(from, 0.0f);
      for (std::size_t i = 0; i < from; ++i)
        for (std::size_t o = 0; o < to; ++o) {
          gradient[i * to + o] += x[i] * dy[o];
          if (dx != nullptr) (*dx)[i] += w[i * to + o] * dy[o];
        }
      for (std::size_t o = 0; o < to; ++o) gradient[from * to + o] += dy[o];
    }
    void step(float rate) {
      for (std::size_t i = 0; i < w.size(); ++i) w[i] -= rate * gradient[i];
      gradient.assign(w.size(), 0.0f);
    }

    std::size_t from, to;
    std::vector<float> w, gradient;
  };

  layer hidden_, last_;
  std::vector<float> middle_, acts_, back_;
};
