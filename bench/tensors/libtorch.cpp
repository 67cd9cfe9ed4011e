// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row 25e: shuffled batches of 64 as tensors of libtorch from samples of 1 KB in memory, against libtorch's
// own DataLoader over the same tensors, with its tensors stacked, and as a data set that makes whole batches.

#include "support/harness.hpp"

#include <penstock/integration/libtorch.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/workers.hpp>

#include <torch/data.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ps = penstock;

namespace {

constexpr std::size_t batch_size = 64;
using sample = std::array<float, 256>;

/// The sum of the first values, which shows that a batch is there.
std::uint64_t look(const torch::Tensor& batch) {
  const float* const values = batch.data_ptr<float>();
  std::uint64_t sum = 0;
  for (std::int64_t i = 0; i < batch.size(0); ++i)
    sum += static_cast<std::uint64_t>(values[i * batch.stride(0)]);
  return sum;
}

/// Makes a batch at once, as libtorch's documentation advises for speed.
struct whole_batches
    : torch::data::datasets::BatchDataset<whole_batches, torch::Tensor, std::vector<std::size_t>> {
  explicit whole_batches(torch::Tensor all) : all_(std::move(all)) {}
  torch::Tensor get_batch(std::vector<std::size_t> indexes) override {
    const auto count = static_cast<std::int64_t>(indexes.size());
    return all_.index_select(0, torch::from_blob(indexes.data(), {count}, torch::kLong));
  }
  [[nodiscard]] torch::optional<std::size_t> size() const override {
    return static_cast<std::size_t>(all_.size(0));
  }

 private:
  torch::Tensor all_;
};

void measure(const bench::options& o) {
  const std::size_t count = o.quick ? 4'096 : 65'536;
  std::vector<sample> data(count);
  for (std::size_t i = 0; i < count; ++i) data[i].fill(static_cast<float>(i % 1024));
  const torch::Tensor all = torch::from_blob(data.data(), {static_cast<std::int64_t>(count), 256});
  auto run = (ps::from(std::span<const sample>(data)) | ps::shuffle(ps::seed(7)) | ps::batch(batch_size) |
              ps::workers(1))
                 .open();
  auto ours = bench::epochs_of(run, [](auto& b) {
    const torch::Tensor tensor = ps::as_tensors(b);
    return look(tensor);
  });
  for (const std::size_t workers : {0, 1, 2}) {
    const auto options = torch::data::DataLoaderOptions().batch_size(batch_size).workers(workers);
    const std::string with = ", " + std::to_string(workers) + " workers";
    auto stacked = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
        torch::data::datasets::TensorDataset(all).map(
            torch::data::transforms::Stack<torch::data::TensorExample>()),
        options);
    const std::string letter(1, static_cast<char>('e' + workers));
    bench::compare(
        o, {"25" + letter, "batches as tensors, 1 KB, shuffled, 1 worker / libtorch's DataLoader" + with, 3},
        ours, [&] {
          std::uint64_t sum = 0;
          for (auto& batch : *stacked) sum += look(batch.data);
          return sum;
        });
  }
  auto whole = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
      whole_batches(all), torch::data::DataLoaderOptions().batch_size(batch_size));
  bench::compare(o, {"25h", "the same / its DataLoader over a data set that makes whole batches"}, ours, [&] {
    std::uint64_t sum = 0;
    for (auto& batch : *whole) sum += look(batch);
    return sum;
  });
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, measure); }
