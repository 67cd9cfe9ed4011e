// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows gpu1 to gpu3: batches on their way to a GPU. 32 batches of 16 MiB; the time is that of an epoch, from
// an empty ring until the last step is done on the device.
//
// gpu1: against a loop of bare cudaMemcpyAsync of the same bytes from pinned memory. The slots of the run are
//       filled by one worker meanwhile, from memory.
// gpu2: a step that takes about as long as a copy, on another stream. The reference does first all the copies
//       and then all the steps: 2 is full overlap, 1 is none.
// gpu3: a step of 100 ms, which is about what a ResNet-50 takes for 256 images. The share of time that the
//       device does not work on a step, from the end of the first one to the end of the last.

#include "support/harness.hpp"

#include <penstock/device/cuda.hpp>
#include <penstock/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace ps = penstock;

namespace {

using sample = std::array<std::uint8_t, 65'536>;
constexpr std::size_t per_batch = 256, batch_bytes = per_batch * sizeof(sample);

void check(cudaError_t code) {
  if (code != cudaSuccess) throw std::runtime_error(std::string("CUDA: ") + cudaGetErrorString(code));
}

/// The resources of a loop by hand: pinned memory and device memory for some batches, two streams, and work
/// that reads a batch's memory and keeps the device busy for a while.
class by_hand {
 public:
  static constexpr std::size_t depth = 4;

  by_hand() {
    check(cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking));
    check(cudaStreamCreateWithFlags(&training, cudaStreamNonBlocking));
    for (std::size_t i = 0; i < depth; ++i) {
      check(cudaHostAlloc(&pinned[i], batch_bytes, cudaHostAllocPortable));
      check(cudaMalloc(&device[i], batch_bytes));
    }
    check(cudaMalloc(&sink, batch_bytes));
    last_for(seconds([&] { this->copy(0); }));
  }
  by_hand(const by_hand&) = delete;
  by_hand& operator=(const by_hand&) = delete;
  ~by_hand() {
    cudaDeviceSynchronize();
    for (std::size_t i = 0; i < depth; ++i) {
      cudaFreeHost(pinned[i]);
      cudaFree(device[i]);
    }
    cudaFree(sink);
    cudaStreamDestroy(copies);
    cudaStreamDestroy(training);
  }

  void copy(std::size_t i) {
    check(cudaMemcpyAsync(device[i], pinned[i], batch_bytes, cudaMemcpyHostToDevice, copies));
  }
  void step(const void* batch) {
    for (int i = 0; i < step_passes; ++i)
      check(cudaMemcpyAsync(sink, batch, batch_bytes, cudaMemcpyDeviceToDevice, training));
  }
  /// Makes a step take about this long; returns how long it takes.
  double last_for(double wanted) {
    double passes = 1, step = 0;
    for (int round = 0; round < 3; ++round) {
      step_passes = std::max(1, static_cast<int>(passes + 0.5));
      step = seconds([&] { this->step(device[0]); });
      passes = wanted / step * step_passes;
    }
    return step;
  }
  void finish() {
    check(cudaStreamSynchronize(copies));
    check(cudaStreamSynchronize(training));
  }

  cudaStream_t copies = nullptr, training = nullptr;
  std::array<void*, depth> pinned{}, device{};
  void* sink = nullptr;
  int step_passes = 1;

 private:
  template <class F>
  double seconds(F f) {
    finish();
    const double begin = bench::seconds_now();
    for (int i = 0; i < 8; ++i) f();
    finish();
    return (bench::seconds_now() - begin) / 8;
  }
};

void measure(const bench::options& o) {
  const bench::row bytes{"gpu1", "batches of 16 MiB to a GPU, and bare cudaMemcpyAsync", 0.95};
  const bench::row overlap{"gpu2", "copy and step at once, and one after the other", 0};
  const bench::row stall{"gpu3", "stall of a GPU with a step of 100 ms, %", 0, true};
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    for (const bench::row& r : {bytes, overlap, stall})
      if (o.wants(r.id)) bench::print_skipped(r, "there is no GPU");
    return;
  }
  by_hand hand;
  const std::uint64_t batches = o.quick ? 4 : 32;
  const std::vector<sample> data(8);
  auto run = (ps::generated(batches * per_batch, [&data](std::uint64_t i) { return data[i % data.size()]; }) |
              ps::batch(per_batch) | ps::prefetch(by_hand::depth) | ps::workers(2) |
              ps::pin_and_copy(ps::cuda{.stream = hand.training}))
                 .open();
  bench::compare(
      o, bytes,
      [&, epoch = bench::epochs_of(run, [](const auto& b) { return b.size(); })]() mutable {
        const std::uint64_t sum = epoch();
        hand.finish();
        return sum;
      },
      [&] {
        for (std::uint64_t i = 0; i < batches; ++i) hand.copy(i % by_hand::depth);
        hand.finish();
        return batches * per_batch;
      });
  auto steps =
      (ps::generated(batches * per_batch, [&data](std::uint64_t i) { return data[i % data.size()]; }) |
       ps::batch(per_batch) | ps::prefetch(by_hand::depth) | ps::workers(2) |
       ps::pin_and_copy(ps::cuda{.stream = hand.training}))
          .open();
  bench::compare(
      o, overlap,
      [&, epoch = bench::epochs_of(steps,
                                   [&hand](const auto& b) {
                                     hand.step(b.device_data());
                                     return b.size();
                                   })]() mutable {
        const std::uint64_t sum = epoch();
        hand.finish();
        return sum;
      },
      [&] {
        for (std::uint64_t i = 0; i < batches; ++i) hand.copy(i % by_hand::depth);
        hand.finish();
        for (std::uint64_t i = 0; i < batches; ++i) hand.step(hand.device[i % by_hand::depth]);
        hand.finish();
        return batches * per_batch;
      });
  if (!o.wants(stall.id)) return;
  const double step = hand.last_for(0.1);
  std::vector<double> stalls;
  for (std::uint64_t epoch = 0; epoch < (o.quick ? 1 : 5); ++epoch) {
    double begin = 0;
    for (auto&& b : steps.epoch(1'000'000 + epoch)) {
      hand.step(b.device_data());
      if (begin != 0) continue;
      hand.finish();
      begin = bench::seconds_now();
    }
    hand.finish();
    const double took = bench::seconds_now() - begin;
    stalls.push_back(100 * (1 - step * static_cast<double>(batches - 1) / took));
  }
  bench::print_row(stall, bench::quantile(stalls, 0.75), bench::quantile(stalls, 0.5),
                   "a step takes " + bench::milliseconds(step) + ", " + std::to_string(stalls.size()) +
                       " epochs of " + std::to_string(batches) + " batches");
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, measure); }
