// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Penstock's side of the comparison with other loaders: the protocol of bench/peers/common.py, over shards
// that peer_penstock.py has written. Everything has its default settings.

#include "peers/usage.hpp"
#include "support/folder.hpp"
#include "support/harness.hpp"

#include <penstock/codec/jpeg.hpp>
#include <penstock/image.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage.hpp>

#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;

namespace {

constexpr std::uint64_t seed = 7;
constexpr std::uint32_t side = 224;

/// What the command line says.
struct task {
  std::string work;
  double least_seconds;
  std::uint64_t samples;
  unsigned batch;
  std::vector<std::string> shards;
};

/// What a consumer sees of the batches of an epoch, of photos or of bytes.
template <bool Photos>
struct tally {
  std::uint64_t samples = 0, words = 0, batches = 0;
  double means = 0;

  template <class Batch>
  void add(Batch& b) {
    ++batches;
    samples += b.size();
    if constexpr (Photos) {
      const auto values = ps::get<"jpg">(b);
      const std::size_t count = std::size_t{3} * side * side;
      double sum = 0;
      for (std::size_t i = 0; i < count; ++i) sum += static_cast<double>(values.data()[i]);
      means += sum / static_cast<double>(count);
    } else {
      const auto values = ps::get<"bin">(b);
      words += bench::first_words(reinterpret_cast<const std::byte*>(values.data()), b.size(),
                                  static_cast<std::size_t>(values.shape()[1]));
    }
  }
  [[nodiscard]] std::string check() const {
    return Photos ? std::to_string(means / static_cast<double>(batches)) : std::to_string(words);
  }
};

template <bool Photos = false, class Plan>
void measure(const task& t, const Plan& plan) {
  const double opening = bench::seconds_now();
  auto run = plan.open();
  std::uint64_t number = 0;
  double first = 0;
  const auto epoch = [&](auto&& after) {
    tally<Photos> seen;
    for (auto&& b : run.epoch(number++)) {
      if (first == 0) first = bench::seconds_now() - opening;
      seen.add(b);
      after(seen);
    }
    if (seen.samples != t.samples) throw std::runtime_error("an epoch has too few or too many samples");
    return seen;
  };
  const auto nothing = [](const tally<Photos>&) {};
  const std::string check = epoch(nothing).check();
  const double begin = bench::seconds_now(), cpu_begin = bench::cpu_seconds();
  double seconds = 0;
  std::uint64_t epochs = 0;
  for (; epochs == 0 || seconds < t.least_seconds; ++epochs) {
    if (epoch(nothing).check() != check && !Photos) throw std::runtime_error("an epoch has other samples");
    seconds = bench::seconds_now() - begin;
  }
  const double cpu = bench::cpu_seconds() - cpu_begin;
  bench::megabytes used;
  epoch([&](const tally<Photos>& seen) {
    if (seen.batches == t.samples / t.batch / 2) used = bench::memory();
  });
  std::printf(R"({"samples": %)" PRIu64 R"(, "seconds": %.9g, "cpu_seconds": %.9g, )"
              R"("first_batch_seconds": %.9g, "memory_mb": %.6g, "own_memory_mb": %.6g, "check": %s})"
              "\n",
              epochs * t.samples, seconds, cpu, first, used.all, used.own, check.c_str());
}

template <class Plan>
void restart(const task& t, const Plan& plan) {
  ps::state where = plan.open().state();
  where.step = t.samples / t.batch / 2;
  const std::string saved = to_string(where);
  const double begin = bench::seconds_now();
  auto run = plan.open(ps::state_from_string(saved));
  double first = 0;
  tally<false> seen;
  for (auto&& b : run.epoch(0)) {
    if (first == 0) first = bench::seconds_now() - begin;
    seen.add(b);
  }
  if (where.step * t.batch + seen.samples != t.samples) throw std::runtime_error("samples are missing");
  std::printf(R"({"samples": %)" PRIu64 R"(, "first_batch_seconds": %.9g, "check": null})"
              "\n",
              seen.samples, first);
}

void run_task(const task& t) {
  const auto raw = ps::webdataset(t.shards) | ps::fields<"bin">;
  if (t.work == "jpeg") {
    measure<true>(t, ps::webdataset(t.shards) | ps::fields<"jpg"> | ps::decode<ps::field<"jpg", ps::jpeg>> |
                         ps::shuffle(ps::seed(seed)) |
                         ps::map<"jpg">(ps::random_resized_crop(side), ps::horizontal_flip(),
                                        ps::normalize(ps::imagenet), ps::to_chw(), ps::key("crop")) |
                         ps::batch(t.batch));
  } else if (t.work == "resume") {
    restart(t, raw | ps::shuffle(ps::seed(seed)) | ps::batch(t.batch));
  } else if (t.work.ends_with("_shuffled")) {
    measure(t, raw | ps::shuffle(ps::seed(seed)) | ps::batch(t.batch));
  } else {
    measure(t, raw | ps::batch(t.batch));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) {
    std::fprintf(stderr, "usage: %s WORK LEAST_SECONDS SAMPLES BATCH SHARD...\n", argv[0]);
    return 2;
  }
  try {
    run_task({argv[1], std::atof(argv[2]), std::strtoull(argv[3], nullptr, 10),
              static_cast<unsigned>(std::atoi(argv[4])), std::vector<std::string>(argv + 5, argv + argc)});
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", argv[0], e.what());
    return 1;
  }
}
