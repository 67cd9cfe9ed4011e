// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A transformer with one layer and one head, small enough to read: rows of packed documents in, losses and
// gradients out. Attention is causal and stays within a document, by the same numbers that a FlashAttention
// kernel is given. Plain loops in a fixed order, so that equal batches give equal losses, bit for bit.

#include "token_batch.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <istream>
#include <ostream>
#include <vector>

class tiny_transformer {
 public:
  using batch = token_batch;
  static constexpr double usual_rate = 0.5;

  tiny_transformer(std::size_t vocabulary, std::size_t width, std::size_t longest) : width_(width) {
    const std::size_t square = width * width;
    for (const std::size_t size : {vocabulary * width, longest * width, square, square, square, square})
      parts_.push_back({std::vector<float>(size), std::vector<float>(size)});
    std::uint64_t seed = 1;  // any small numbers
    for (auto& [weights, gradient] : parts_)
      for (float& w : weights) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        w = (static_cast<float>(seed >> 40) / 8388608.0f - 1.0f) / std::sqrt(static_cast<float>(width));
      }
  }

  /// One step of gradient descent; returns the mean loss of the labels.
  double train(const batch& b, float rate) {
    for (auto& [weights, gradient] : parts_) gradient.assign(gradient.size(), 0.0f);
    const double loss = forward(b);
    backward(b);
    for (auto& [weights, gradient] : parts_)
      for (std::size_t i = 0; i < weights.size(); ++i) weights[i] -= rate * gradient[i];
    return loss;
  }
  /// What the layer makes of each token: rows of `width` numbers.
  const std::vector<float>& outputs(const batch& b) {
    (void)forward(b);
    return h_;
  }
  void save(std::ostream& to) const {
    for (const auto& [w, gradient] : parts_)
      to.write(reinterpret_cast<const char*>(w.data()),
               static_cast<std::streamsize>(w.size() * sizeof(float)));
  }
  void load(std::istream& from) {
    for (auto& [w, gradient] : parts_)
      from.read(reinterpret_cast<char*>(w.data()), static_cast<std::streamsize>(w.size() * sizeof(float)));
  }

 private:
  enum part { words, places, query, key, value, out };
  struct learned {
    std::vector<float> weights, gradient;
  };
  using matrix = std::vector<float>;

  [[nodiscard]] const float* w(part p) const { return parts_[p].weights.data(); }
  [[nodiscard]] float* g(part p) { return parts_[p].gradient.data(); }

  // to (n x width) += from (n x width) times the square matrix m, or its transpose
  void multiply(const matrix& from, const float* m, matrix& to, bool transposed = false) const {
    for (std::size_t i = 0; i < from.size() / width_; ++i)
      for (std::size_t a = 0; a < width_; ++a)
        for (std::size_t c = 0; c < width_; ++c)
          to[i * width_ + c] += from[i * width_ + a] * (transposed ? m[c * width_ + a] : m[a * width_ + c]);
  }
  // gradient of such a product for the matrix
  void add_outer(const matrix& from, const matrix& to, float* m) const {
    for (std::size_t i = 0; i < from.size() / width_; ++i)
      for (std::size_t a = 0; a < width_; ++a)
        for (std::size_t c = 0; c < width_; ++c)
          m[a * width_ + c] += from[i * width_ + a] * to[i * width_ + c];
  }
  [[nodiscard]] float dot(const float* a, const float* c) const {
    float sum = 0;
    for (std::size_t k = 0; k < width_; ++k) sum += a[k] * c[k];
    return sum;
  }
  void add(float* to, const float* from, float times) const {
    for (std::size_t k = 0; k < width_; ++k) to[k] += times * from[k];
  }
  // For each token, and each one before it in its document: f(token, first, attention to [first, token]).
  template <class F>
  void each_attention(const batch& b, const F& f) {
    const float scale = 1.0f / std::sqrt(static_cast<float>(width_));
    for (std::size_t d = 0; d + 1 < b.starts.size(); ++d) {
      const auto first = static_cast<std::size_t>(b.starts[d]),
                 end = static_cast<std::size_t>(b.starts[d + 1]);
      for (std::size_t i = first; i < end; ++i) {
        a_.resize(i + 1 - first);
        float highest = -1e30f, sum = 0;
        for (std::size_t j = first; j <= i; ++j) {
          a_[j - first] = scale * dot(&q_[i * width_], &k_[j * width_]);
          highest = std::max(highest, a_[j - first]);
        }
        for (float& x : a_) sum += x = std::exp(x - highest);
        for (float& x : a_) x /= sum;
        f(i, first, scale);
      }
    }
  }
  double forward(const batch& b) {
    const std::size_t n = b.tokens.size(), d = width_;
    x_.resize(n * d);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t k = 0; k < d; ++k)
        x_[i * d + k] =
            w(words)[b.tokens[i] * d + k] + w(places)[static_cast<std::size_t>(b.positions[i]) * d + k];
    for (matrix* one : {&q_, &k_, &v_, &c_}) one->assign(n * d, 0.0f);
    multiply(x_, w(query), q_);
    multiply(x_, w(key), k_);
    multiply(x_, w(value), v_);
    each_attention(b, [&](std::size_t i, std::size_t first, float) {
      for (std::size_t j = first; j <= i; ++j) add(&c_[i * d], &v_[j * d], a_[j - first]);
    });
    h_ = x_;
    multiply(c_, w(out), h_);
    return losses(b, nullptr);
  }
  // The mean loss; with `dh`, also its gradient for the outputs and the words.
  double losses(const batch& b, matrix* dh) {
    const std::size_t d = width_, vocabulary = parts_[words].weights.size() / d;
    std::size_t count = 0;
    for (const std::int64_t label : b.labels) count += label >= 0 ? 1 : 0;
    double loss = 0;
    for (std::size_t i = 0; i < b.tokens.size(); ++i) {
      if (b.labels[i] < 0) continue;
      p_.resize(vocabulary);
      float highest = -1e30f, sum = 0;
      for (std::size_t t = 0; t < vocabulary; ++t)
        highest = std::max(highest, p_[t] = dot(&h_[i * d], w(words) + t * d));
      for (float& x : p_) sum += x = std::exp(x - highest);
      loss -= std::log(static_cast<double>(p_[static_cast<std::size_t>(b.labels[i])] / sum));
      for (std::size_t t = 0; dh != nullptr && t < vocabulary; ++t) {
        const float right = static_cast<std::int64_t>(t) == b.labels[i] ? 1.0f : 0.0f;
        const float slope = (p_[t] / sum - right) / static_cast<float>(count);
        add(&(*dh)[i * d], w(words) + t * d, slope);
        add(g(words) + t * d, &h_[i * d], slope);
      }
    }
    return count == 0 ? 0 : loss / static_cast<double>(count);
  }
  void backward(const batch& b) {
    const std::size_t n = b.tokens.size(), d = width_;
    matrix dh(n * d), dc(n * d), dq(n * d), dk(n * d), dv(n * d);
    (void)losses(b, &dh);
    multiply(dh, w(out), dc, true);
    add_outer(c_, dh, g(out));
    each_attention(b, [&](std::size_t i, std::size_t first, float scale) {
      float mean = 0;
      for (std::size_t j = first; j <= i; ++j) mean += a_[j - first] * dot(&dc[i * d], &v_[j * d]);
      for (std::size_t j = first; j <= i; ++j) {
        const float slope = scale * a_[j - first] * (dot(&dc[i * d], &v_[j * d]) - mean);
        add(&dv[j * d], &dc[i * d], a_[j - first]);
        add(&dq[i * d], &k_[j * d], slope);
        add(&dk[j * d], &q_[i * d], slope);
      }
    });
    add_outer(x_, dq, g(query));
    add_outer(x_, dk, g(key));
    add_outer(x_, dv, g(value));
    multiply(dq, w(query), dh, true);  // to the gradient of x, which h also is
    multiply(dk, w(key), dh, true);
    multiply(dv, w(value), dh, true);
    for (std::size_t i = 0; i < n; ++i) {
      add(g(words) + b.tokens[i] * d, &dh[i * d], 1);
      add(g(places) + static_cast<std::size_t>(b.positions[i]) * d, &dh[i * d], 1);
    }
  }

  std::size_t width_;
  std::vector<learned> parts_;
  matrix x_, q_, k_, v_, c_, h_, a_, p_;
};
