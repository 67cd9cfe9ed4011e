// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Trains a small convolutional network of libtorch on the shards of Fashion-MNIST that pack_webdataset wrote:
//
//     pack_webdataset --input fashion-mnist --output shards
//     train_libtorch --shards shards
//
// Batches become tensors without a copy: the network reads the memory that workers wrote to. Training loops
// over `as_examples`, as over libtorch's own DataLoader; testing looks at each batch through `as_tensor`.

#include "arguments.hpp"
#include "fashion_mnist.hpp"

#include <penstock/integration/libtorch.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/engine/tuning/machine.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/workers.hpp>

#include <torch/torch.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

namespace ps = penstock;

namespace {

struct network : torch::nn::Module {
  torch::nn::Sequential layers{torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 16, 3).stride(2).padding(1)),
                               torch::nn::ReLU(),
                               torch::nn::Conv2d(torch::nn::Conv2dOptions(16, 32, 3).stride(2).padding(1)),
                               torch::nn::ReLU(),
                               torch::nn::Flatten(),
                               torch::nn::Linear(32 * 7 * 7, static_cast<std::int64_t>(classes))};

  network() { register_module("layers", layers); }

  /// In: (n, 28, 28) of uint8. Out: (n, 10), the logits. Pixels are normalised over the training set.
  torch::Tensor forward(const torch::Tensor& images) {
    if (images.dim() != 3 || images.size(1) != 28 || images.size(2) != 28)
      throw std::runtime_error("a sample is no image of 28 x 28; pack Fashion-MNIST with pack_webdataset");
    return layers->forward(images.to(torch::kFloat).sub_(72.9f).div_(90.0f).unsqueeze(1));
  }
};

auto samples_of(const std::string& folder, const std::string& split) {
  return decoded(ps::webdataset(folder + "/" + split + "-*.tar"));
}

std::int64_t right_of(const torch::Tensor& logits, const torch::Tensor& labels) {
  return logits.argmax(1).eq(labels).sum().item<std::int64_t>();
}

double test_accuracy(const std::string& folder, network& net, unsigned workers) {
  const torch::NoGradGuard no_gradients;
  const auto loader = samples_of(folder, "t10k") | ps::batch(256, ps::tail::keep) | ps::workers(workers);
  std::int64_t right = 0, seen = 0;
  for (auto&& b : loader) {
    const torch::Tensor labels = ps::as_tensor(ps::get<"cls">(b));
    right += right_of(net.forward(ps::as_tensor(ps::get<"npy">(b))), labels);
    seen += labels.size(0);
  }
  return static_cast<double>(right) / static_cast<double>(seen);
}

void train(arguments& given) {
  const std::string shards = given.text("shards");
  const std::uint64_t epochs = given.number("epochs", 3), batch_size = given.number("batch", 100);
  const std::uint64_t seed = given.number("seed", 7), window = given.number("window", 8);
  const auto workers = static_cast<unsigned>(given.number("workers", ps::default_workers(1), max_workers));
  given.done();

  torch::manual_seed(seed);
  network net;
  torch::optim::Adam optimizer(net.parameters(), torch::optim::AdamOptions(1e-3));
  const auto loader = samples_of(shards, "train") | ps::shuffle(ps::seed(seed), ps::window(window)) |
                      ps::batch(batch_size, ps::tail::keep) | ps::workers(workers);
  auto run = loader.open();
  for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
    const auto begin = std::chrono::steady_clock::now();
    double loss_sum = 0;
    std::int64_t right = 0, seen = 0;
    for (auto& batch : ps::as_examples<"npy", "cls">(run.epoch(epoch))) {
      optimizer.zero_grad();
      const torch::Tensor logits = net.forward(batch.data);
      const torch::Tensor loss = torch::nn::functional::cross_entropy(logits, batch.target);
      loss.backward();
      optimizer.step();
      loss_sum += loss.item<double>() * static_cast<double>(batch.target.size(0));
      right += right_of(logits, batch.target);
      seen += batch.target.size(0);
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    const auto count = static_cast<double>(seen);
    std::printf("epoch %llu: loss %.4f, accuracy %.4f, %.0f samples/s, test accuracy %.4f\n",
                static_cast<unsigned long long>(epoch), loss_sum / count, static_cast<double>(right) / count,
                count / took.count(), test_accuracy(shards, net, workers));
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    constexpr const char* usage =
        "train_libtorch --shards DIR [--epochs 3] [--batch 100] [--workers N] [--window SHARDS] [--seed 7]";
    if (asked_for_help(argc, argv, usage)) return 0;
    arguments given(argc, argv, usage);
    train(given);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "train_libtorch: %s\n", e.what());
    return 1;
  }
}
