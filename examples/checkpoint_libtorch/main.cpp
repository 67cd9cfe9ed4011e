// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Weights, optimiser and the state of the loader in one libtorch archive. A training that stops and resumes
// from the archive, with another number of workers, ends with the weights of an undisturbed one, bit for bit.
// Tensors are views of the batch: nothing is copied between the loader and libtorch.

#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/workers.hpp>

#include <torch/torch.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace ps = penstock;
namespace fs = std::filesystem;

namespace {

constexpr std::int64_t inputs = 16;
constexpr std::uint64_t epochs = 2;

using sample = ps::record<ps::field<"x", std::array<float, inputs>>, ps::field<"y", float>>;

/// Points in a box, and their distances from its centre.
sample point(std::uint64_t i) {
  ps::rng random(1, 0, i, 0);
  std::array<float, inputs> x{};
  float square = 0;
  for (float& v : x) {
    v = static_cast<float>(random.uniform(-1, 1));
    square += v * v;
  }
  return sample(x, square / static_cast<float>(inputs));
}

auto points(unsigned workers) {
  return ps::generated(10'000, point) | ps::shuffle(ps::seed(7)) | ps::batch(64) | ps::workers(workers) |
         ps::pin_and_copy;
}

struct training {
  torch::nn::Sequential net{torch::nn::Linear(inputs, 32), torch::nn::ReLU(), torch::nn::Linear(32, 1)};
  torch::optim::Adam optimizer{net->parameters(), torch::optim::AdamOptions(1e-3)};

  /// A reader of `path` sees the old archive or the new one, complete.
  void save(const fs::path& path, const ps::state& where) {
    torch::serialize::OutputArchive archive, weights, moments;
    net->save(weights);
    optimizer.save(moments);
    archive.write("net", weights);
    archive.write("optimizer", moments);
    archive.write("loader", c10::IValue(to_string(where)));
    fs::path beside = path;
    beside += ".partial";
    archive.save_to(beside.string());
    fs::rename(beside, path);
  }

  ps::state restore(const fs::path& path) {
    torch::serialize::InputArchive archive, weights, moments;
    archive.load_from(path.string());
    archive.read("net", weights);
    archive.read("optimizer", moments);
    net->load(weights);
    optimizer.load(moments);
    c10::IValue where;
    archive.read("loader", where);
    return ps::state_from_string(where.toStringRef());
  }
};

/// A batch's values as a tensor. libtorch has no tensors of const; it only reads these.
torch::Tensor view(std::span<const float> values, at::IntArrayRef shape) {
  return torch::from_blob(const_cast<float*>(values.data()), shape);
}

/// Trains to the end, or saves and leaves after `stop_after` batches. Returns the weights, as one row.
torch::Tensor train(const fs::path& checkpoint, unsigned workers, std::uint64_t stop_after) {
  torch::manual_seed(1);
  training t;
  const auto loader = points(workers);
  std::optional<ps::state> place;
  if (fs::exists(checkpoint)) place = t.restore(checkpoint);
  auto run = place ? loader.open(*place) : loader.open();

  float loss_then = 0;
  std::uint64_t steps = 0;
  for (auto epoch : run.epochs(epochs)) {
    for (auto&& b : epoch) {
      const auto rows = static_cast<std::int64_t>(b.size());
      const torch::Tensor x = view(get<"x">(b).values(), {rows, inputs});
      const torch::Tensor y = view(get<"y">(b), {rows, 1});
      t.optimizer.zero_grad();
      torch::Tensor loss = torch::mse_loss(t.net->forward(x), y);
      loss.backward();
      t.optimizer.step();
      loss_then = loss.item<float>();
      if (++steps == stop_after) {
        t.save(checkpoint, run.state());
        std::printf("stopped after epoch %llu step %llu, loss %.5f\n",
                    static_cast<unsigned long long>(epoch.number()),
                    static_cast<unsigned long long>(b.step()), static_cast<double>(loss_then));
        break;
      }
    }
    if (steps == stop_after) break;
  }
  if (steps != stop_after) std::printf("trained, loss %.5f\n", static_cast<double>(loss_then));

  std::vector<torch::Tensor> all;
  for (const torch::Tensor& part : t.net->parameters()) all.push_back(part.detach().reshape({-1}));
  return torch::cat(all);
}

}  // namespace

int main() try {
  torch::set_num_threads(1);
  std::string pattern = (fs::temp_directory_path() / "penstock-libtorch-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make a folder in " + pattern);
  const fs::path folder = pattern;

  constexpr std::uint64_t never = ~std::uint64_t{0};
  const torch::Tensor through = train(folder / "none.pt", 2, never);
  train(folder / "checkpoint.pt", 2, 37);
  train(folder / "checkpoint.pt", 0, 150);  // past the end of the first epoch
  const torch::Tensor in_parts = train(folder / "checkpoint.pt", 3, never);
  fs::remove_all(folder);

  const bool same = torch::equal(through, in_parts);
  std::printf("%lld weights, %s\n", static_cast<long long>(through.numel()),
              same ? "bit for bit those of a training that ran through" : "and some differ");
  return same ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "checkpoint_libtorch: %s\n", e.what());
  return 1;
}
