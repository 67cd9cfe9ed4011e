// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// libtorch's own DataLoader over samples in a file that is mapped: a data set that makes whole batches, as
// its documentation advises. The arguments and the output are those of main.cpp; WORKERS comes before the
// file.

#include "peers/npy_rows.hpp"
#include "peers/usage.hpp"
#include "support/folder.hpp"
#include "support/harness.hpp"

#include <torch/data.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

/// Rows of `bytes` in a mapped file.
struct rows : torch::data::datasets::BatchDataset<rows, torch::Tensor, std::vector<std::size_t>> {
  rows(const std::byte* data, std::size_t count, std::size_t bytes)
      : data_(data), count_(count), bytes_(bytes) {}

  torch::Tensor get_batch(std::vector<std::size_t> indexes) override {
    auto batch = torch::empty({static_cast<std::int64_t>(indexes.size()), static_cast<std::int64_t>(bytes_)},
                              torch::kUInt8);
    auto* into = static_cast<std::byte*>(batch.data_ptr());
    for (const std::size_t i : indexes) {
      std::memcpy(into, data_ + i * bytes_, bytes_);
      into += bytes_;
    }
    return batch;
  }
  [[nodiscard]] torch::optional<std::size_t> size() const override { return count_; }

 private:
  const std::byte* data_;
  std::size_t count_, bytes_;
};

template <class Sampler>
void measure(const rows& data, double least_seconds, std::size_t samples, std::size_t batch,
             std::size_t workers) {
  const double opening = bench::seconds_now();
  auto loader = torch::data::make_data_loader<Sampler>(
      data, torch::data::DataLoaderOptions().batch_size(batch).workers(workers));
  double first = 0;
  const auto epoch = [&](bench::megabytes* used = nullptr) {
    std::uint64_t words = 0, seen = 0;
    for (auto& tensor : *loader) {
      if (first == 0) first = bench::seconds_now() - opening;
      const auto count = static_cast<std::size_t>(tensor.size(0));
      words += bench::first_words(static_cast<const std::byte*>(tensor.data_ptr()), count,
                                  static_cast<std::size_t>(tensor.size(1)));
      seen += count;
      if (used != nullptr && used->all == 0 && seen >= samples / 2) *used = bench::memory();
    }
    if (seen != samples) throw std::runtime_error("an epoch has too few or too many samples");
    return words;
  };
  const std::uint64_t check = epoch();
  const double begin = bench::seconds_now(), cpu_begin = bench::cpu_seconds();
  double seconds = 0;
  std::uint64_t epochs = 0;
  for (; epochs == 0 || seconds < least_seconds; ++epochs) {
    if (epoch() != check) throw std::runtime_error("an epoch has other samples");
    seconds = bench::seconds_now() - begin;
  }
  const double cpu = bench::cpu_seconds() - cpu_begin;
  bench::megabytes used;
  epoch(&used);
  bench::print_result(epochs * samples, seconds, cpu, first, used, check);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) {
    std::fprintf(stderr, "usage: %s WORK LEAST_SECONDS SAMPLES BATCH WORKERS FILE\n", argv[0]);
    return 2;
  }
  try {
    const auto number = [&](int i) { return static_cast<std::size_t>(std::strtoull(argv[i], nullptr, 10)); };
    const bench::npy_rows file(argv[6], number(3));
    const std::size_t samples = file.samples();
    const rows data(file.data(), samples, file.bytes());
    if (std::string_view(argv[1]).ends_with("_shuffled"))
      measure<torch::data::samplers::RandomSampler>(data, std::atof(argv[2]), samples, number(4), number(5));
    else
      measure<torch::data::samplers::SequentialSampler>(data, std::atof(argv[2]), samples, number(4),
                                                        number(5));
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", argv[0], e.what());
    return 1;
  }
}
