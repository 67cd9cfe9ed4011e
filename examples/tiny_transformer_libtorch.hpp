// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The model of tiny_transformer.hpp made of libtorch's modules: attention and a feed-forward network, trained
// by Adam. Attention is computed document by document, as a kernel for packed rows does. One thread and
// algorithms without chance, so that equal batches give equal losses, bit for bit.

#include "token_batch.hpp"

#include <torch/nn.h>
#include <torch/optim/adam.h>
#include <torch/serialize/archive.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <istream>
#include <limits>
#include <ostream>
#include <span>
#include <sstream>
#include <string>
#include <vector>

class tiny_transformer {
 public:
  using batch = token_batch;
  static constexpr double usual_rate = 0.01;

  tiny_transformer(std::size_t vocabulary, std::size_t width, std::size_t longest)
      : net_(static_cast<std::int64_t>(vocabulary), static_cast<std::int64_t>(width),
             static_cast<std::int64_t>(longest)),
        adam_(net_.parameters(), torch::optim::AdamOptions(usual_rate)) {}

  /// One step; returns the mean loss of the labels.
  double train(const batch& b, float rate) {
    static_cast<torch::optim::AdamOptions&>(adam_.param_groups()[0].options()).lr(rate);
    adam_.zero_grad();
    const torch::Tensor labels = tensor_of(b.labels);
    const torch::Tensor logits = net_.head->forward(net_.forward(b));
    const torch::Tensor sum = torch::nn::functional::cross_entropy(
        logits, labels,
        torch::nn::functional::CrossEntropyFuncOptions().ignore_index(-100).reduction(torch::kSum));
    const torch::Tensor loss = sum / labels.ge(0).sum().clamp_min(1);
    loss.backward();
    adam_.step();
    return loss.item<double>();
  }
  /// What the layers make of each token: rows of `width` numbers.
  std::vector<float> outputs(const batch& b) {
    const torch::NoGradGuard no_gradients;
    const torch::Tensor made = net_.forward(b).contiguous();
    return {made.data_ptr<float>(), made.data_ptr<float>() + made.numel()};
  }
  void save(std::ostream& to) const {
    torch::serialize::OutputArchive all, weights, moments;
    net_.save(weights);
    adam_.save(moments);
    all.write("net", weights);
    all.write("adam", moments);
    all.save_to(to);
  }
  /// Reads to the end of the stream, which fails if that is no archive of this model.
  void load(std::istream& from) {
    std::ostringstream bytes;
    bytes << from.rdbuf();
    const std::string archive = bytes.str();
    const std::vector<torch::Tensor> parameters = net_.parameters();
    std::vector<std::vector<std::int64_t>> shapes;
    for (const torch::Tensor& p : parameters) shapes.push_back(p.sizes().vec());
    try {
      torch::serialize::InputArchive all, weights, moments;
      all.load_from(archive.data(), archive.size());
      all.read("net", weights);
      all.read("adam", moments);
      net_.load(weights);
      adam_.load(moments);
    } catch (const c10::Error&) {
      from.setstate(std::ios::failbit);
    }
    // A module takes what an archive has, of any size.
    for (std::size_t i = 0; i < parameters.size(); ++i)
      if (parameters[i].sizes() != shapes[i]) from.setstate(std::ios::failbit);
  }

 private:
  // libtorch has no tensors of const, and none of unsigned numbers; it only reads these.
  template <class T>
  static torch::Tensor tensor_of(std::span<const T> values) {
    return torch::from_blob(const_cast<T*>(values.data()), {static_cast<std::int64_t>(values.size())},
                            sizeof(T) == 8 ? torch::kLong : torch::kInt)
        .to(torch::kLong);
  }

  struct layers : torch::nn::Module {
    torch::nn::Embedding words{nullptr}, places{nullptr};
    torch::nn::LayerNorm before_attention{nullptr}, before_feed{nullptr}, last{nullptr};
    torch::nn::Linear query_key_value{nullptr}, out{nullptr}, wider{nullptr}, narrower{nullptr},
        head{nullptr};

    layers(std::int64_t vocabulary, std::int64_t width, std::int64_t longest) {
      torch::set_num_threads(1);
      torch::globalContext().setDeterministicAlgorithms(true, false);
      torch::manual_seed(1);
      using namespace torch::nn;
      words = register_module("words", Embedding(vocabulary, width));
      places = register_module("places", Embedding(longest, width));
      before_attention = register_module("before_attention", LayerNorm(LayerNormOptions({width})));
      query_key_value = register_module("query_key_value", Linear(width, 3 * width));
      out = register_module("out", Linear(width, width));
      before_feed = register_module("before_feed", LayerNorm(LayerNormOptions({width})));
      wider = register_module("wider", Linear(width, 4 * width));
      narrower = register_module("narrower", Linear(4 * width, width));
      last = register_module("last", LayerNorm(LayerNormOptions({width})));
      head = register_module("head", Linear(width, vocabulary));
    }
    torch::Tensor forward(const batch& b) {
      torch::Tensor x = words(tensor_of(b.tokens)) + places(tensor_of(b.positions));
      x = x + out(attention(query_key_value(before_attention(x)), b.starts));
      x = x + narrower(torch::gelu(wider(before_feed(x))));
      return last(x);
    }
    // In: queries, keys and values, each `width` numbers of a token's row. Out: what each token attends to,
    // in its own document, up to itself.
    static torch::Tensor attention(const torch::Tensor& all, std::span<const std::int32_t> starts) {
      const std::int64_t width = all.size(1) / 3;
      std::vector<torch::Tensor> documents;
      for (std::size_t d = 0; d + 1 < starts.size(); ++d) {
        const std::int64_t length = starts[d + 1] - starts[d];
        const std::vector<torch::Tensor> qkv = all.narrow(0, starts[d], length).split(width, 1);
        const torch::Tensor later = torch::ones({length, length}, torch::kBool).triu(1);
        const torch::Tensor scores = qkv[0].mm(qkv[1].t()) / std::sqrt(static_cast<double>(width));
        documents.push_back(
            scores.masked_fill(later, -std::numeric_limits<float>::infinity()).softmax(1).mm(qkv[2]));
      }
      return torch::cat(documents);
    }
  };

  layers net_;
  torch::optim::Adam adam_;
};
