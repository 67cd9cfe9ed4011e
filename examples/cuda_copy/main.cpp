// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A training loop whose step is a kernel. The host only launches: copies run on a stream of their own, and
// the stream of the kernels waits for each batch, not the host. The C++ compiler compiles the pipeline, nvcc
// the kernels (step.cu).
//
// The samples are synthetic: images of 28 x 28 bytes, one of ten patterns with noise. They cross the bus as
// bytes;
// on_device makes real numbers of them, with a kernel of penstock::cuda_kernels. Without a GPU it says so and
// exits with status 77.

#include "step.hpp"

#include <penstock/device/cuda.hpp>
#include <penstock/device/image/operations.hpp>
#include <penstock/penstock.hpp>
#include <penstock/stage/on_device.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>

namespace ps = penstock;

namespace {

constexpr std::uint64_t samples = 20'000;
constexpr std::size_t length = 28 * 28;

/// An image whose shape is part of its type, as a batch wants it: height, width, channels.
struct digit {
  using unfinished = void;
  using value_type = std::uint8_t;
  static constexpr ps::extents static_shape{28, 28, 1};
  std::array<std::uint8_t, length> pixels{};

  [[nodiscard]] static constexpr ps::extents shape() { return static_shape; }
  void write_to(std::uint8_t* into) const { std::copy(pixels.begin(), pixels.end(), into); }
};
using sample = ps::record<ps::field<"image", digit>, ps::field<"label", std::int64_t>>;

sample made_up(std::uint64_t index) {
  const std::uint64_t label = index % 10;
  digit image;
  for (std::size_t i = 0; i < length; ++i) {
    const std::uint64_t noise = ps::mix64(index * length + i) % 120;
    const bool bright = ps::mix64(label * length + i) % 4 == 0;
    image.pixels[i] = static_cast<std::uint8_t>(noise + (bright ? 130 : 0));
  }
  return sample(image, static_cast<std::int64_t>(label));
}

void check(cudaError_t code) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "CUDA: %s\n", cudaGetErrorString(code));
  std::exit(1);
}

void train() {
  cudaStream_t stream = nullptr;
  float* weights = nullptr;
  unsigned* right = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  check(cudaMalloc(reinterpret_cast<void**>(&weights), 10 * length * sizeof(float)));
  check(cudaMalloc(reinterpret_cast<void**>(&right), sizeof(unsigned)));
  check(cudaMemsetAsync(weights, 0, 10 * length * sizeof(float), stream));

  {
    const auto loader = ps::generated(samples, made_up) | ps::shuffle(ps::seed(1)) | ps::batch(256) |
                        ps::prefetch(4) | ps::pin_and_copy(ps::cuda{.stream = stream});
    const auto plan = loader | ps::on_device<"image">(ps::to_float());
    std::printf("%s\n", ps::describe(plan).c_str());
    auto run = plan.open();
    for (auto epoch : run.epochs(3)) {
      check(cudaMemsetAsync(right, 0, sizeof(unsigned), stream));
      for (auto&& b : epoch) {
        const float* const images = ps::device_view<"image">(b).data();
        const auto* const labels = static_cast<const std::int64_t*>(b.device_data<1>());
        count_right(images, labels, b.size(), length, weights, right, stream);
        train_step(images, labels, b.size(), length, weights, 0.5f, stream);
        check(cudaGetLastError());
      }  // the batch may go now: its memory waits until the stream has passed the kernels
      unsigned count = 0;
      check(cudaMemcpyAsync(&count, right, sizeof(count), cudaMemcpyDeviceToHost, stream));
      check(cudaStreamSynchronize(stream));
      std::printf("epoch %llu: %.1f %% were right before their step\n",
                  static_cast<unsigned long long>(epoch.number()), 100.0 * count / samples);
    }
    std::printf("%s\n", ps::report(run.counters()).c_str());
  }
  check(cudaFree(weights));
  check(cudaFree(right));
  check(cudaStreamDestroy(stream));
}

}  // namespace

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("there is no GPU here");
    return 77;
  }
  try {
    train();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
