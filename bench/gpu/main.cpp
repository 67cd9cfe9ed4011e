// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows gpu1 and gpu2: batches on their way to a GPU. 32 batches of 16 MiB; the time is that of an epoch, from
// an empty ring until the last step is done on the device.
//
// gpu1: against a loop of bare cudaMemcpyAsync of the same bytes from pinned memory. The slots of the run are
//       filled by one worker meanwhile, from memory.
// gpu2: a step that takes about as long as a copy, on another stream. The reference does first all the copies
//       and then all the steps: 2 is full overlap, 1 is none.

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
    // the number of passes over a batch that takes as long as its copy
    double passes = 1;
    for (int round = 0; round < 3; ++round) {
      const double copy = seconds([&] { this->copy(0); });
      step_passes = std::max(1, static_cast<int>(passes));
      const double step = seconds([&] { this->step(device[0]); });
      passes = copy / step * step_passes;
    }
    step_passes = std::max(1, static_cast<int>(passes + 0.5));
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
    return bench::seconds_now() - begin;
  }
};

void measure(const bench::options& o) {
  const bench::row bytes{"gpu1", "batches of 16 MiB to a GPU, and bare cudaMemcpyAsync", 0.95};
  const bench::row overlap{"gpu2", "copy and step at once, and one after the other", 0};
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    for (const bench::row& r : {bytes, overlap})
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
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, measure); }
