// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Everything in one .cu file: nvcc compiles the device and a plan, and a kernel sums up what arrives.

#include <penstock/device/cuda.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>

#include <cstdint>
#include <cstdio>

namespace ps = penstock;

static __global__ void add_up(const unsigned* values, unsigned count, unsigned long long* sum) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) atomicAdd(sum, static_cast<unsigned long long>(values[i]));
}

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("compiled, and not run: there is no GPU");
    return 77;
  }
  constexpr std::uint64_t samples = 100'000;
  cudaStream_t training = nullptr;
  unsigned long long* sum = nullptr;
  unsigned long long found = 0;
  if (cudaStreamCreateWithFlags(&training, cudaStreamNonBlocking) != cudaSuccess) return 1;
  if (cudaMalloc(&sum, sizeof(*sum)) != cudaSuccess) return 1;
  if (cudaMemsetAsync(sum, 0, sizeof(*sum), training) != cudaSuccess) return 1;
  const auto loader = ps::generated(samples, [](std::uint64_t i) { return static_cast<unsigned>(i); }) |
                      ps::shuffle(ps::seed(3)) | ps::map([](unsigned x) { return x + 1; }) | ps::batch(512) |
                      ps::prefetch(4) | ps::workers(2) | ps::pin_and_copy(ps::cuda{.stream = training});
  auto run = loader.open();
  for (auto&& b : run) {
    const auto count = static_cast<unsigned>(b.size());
    add_up<<<(count + 255) / 256, 256, 0, training>>>(static_cast<const unsigned*>(b.device_data()), count,
                                                      sum);
  }
  if (cudaMemcpyAsync(&found, sum, sizeof(found), cudaMemcpyDeviceToHost, training) != cudaSuccess) return 1;
  if (cudaStreamSynchronize(training) != cudaSuccess) return 1;
  const bool right = found == samples * (samples + 1) / 2;
  std::printf("the sum is %llu: %s\n", found, right ? "right" : "wrong");
  return right ? 0 : 1;
}
