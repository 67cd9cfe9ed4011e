// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows gpu4 and gpu5: the kernels of on_device on 256 images of 256 x 256 x 3 bytes, against a copy in the
// memory of the device that moves as many bytes: what is read, and what is written.
//
// gpu4: normalize, to_half and to_chw of all pixels.
// gpu5: a random crop of 224 x 224 and a flip with probability 1/2 before them. A crop begins at any byte, so
//       that what is read is not aligned.

#include "support/harness.hpp"

#include <penstock/core/random.hpp>
#include <penstock/device/image/image_work.hpp>
#include <penstock/image/values.hpp>

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace ps = penstock;

namespace {

constexpr std::uint64_t slots = 256;
constexpr std::uint32_t side = 256, cropped = 224, channels = 3;

void check(cudaError_t code) {
  if (code != cudaSuccess) throw std::runtime_error(std::string("CUDA: ") + cudaGetErrorString(code));
}

class device_memory {
 public:
  explicit device_memory(std::size_t bytes) { check(cudaMalloc(&at_, bytes)); }
  device_memory(const device_memory&) = delete;
  device_memory& operator=(const device_memory&) = delete;
  ~device_memory() { cudaFree(at_); }
  [[nodiscard]] void* get() const { return at_; }

 private:
  void* at_ = nullptr;
};

void measure(const bench::options& o) {
  const bench::row whole{"gpu4", "bytes to normalised fp16 planes on a GPU, and a copy of as many bytes",
                         0.7};
  const bench::row augmented{"gpu5", "also cropped and flipped, and a copy of as many bytes", 0.6};
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    for (const bench::row& r : {whole, augmented})
      if (o.wants(r.id)) bench::print_skipped(r, "there is no GPU");
    return;
  }
  const std::size_t bytes_in = slots * side * side * channels, bytes_out = bytes_in * 2;
  const device_memory from(bytes_in), to(bytes_out), copy_from(bytes_out), copy_to(bytes_out),
      table(slots * sizeof(ps::image_choice));
  check(cudaMemset(from.get(), 100, bytes_in));
  ps::image_work work;
  work.from = static_cast<const std::uint8_t*>(from.get());
  work.to = to.get();
  work.slots = work.valid = slots;
  work.pixel_step = channels;
  work.row_step = std::int64_t{side} * channels;
  work.slot_step = side * work.row_step;
  work.width = work.height = work.all.right = work.all.bottom = side;
  work.channels = channels;
  work.number = ps::image_number::float16;
  work.planes = true;
  for (std::size_t c = 0; c < channels; ++c) {
    work.shift[c] = static_cast<float>(ps::imagenet.mean[c] * 255);
    work.scale[c] = static_cast<float>(1 / (ps::imagenet.std[c] * 255));
  }
  constexpr int rounds = 20;
  const auto kernels = [&rounds = rounds](const ps::image_work& one) {
    for (int i = 0; i < rounds; ++i) ps::launch_image_work(one, nullptr);
    check(cudaGetLastError());
    check(cudaStreamSynchronize(nullptr));
    return std::uint64_t{0};
  };
  // A copy reads and writes each of its bytes; the kernel reads one for each number, and writes two.
  const auto copies = [&](std::size_t numbers) {
    for (int i = 0; i < rounds; ++i)
      check(cudaMemcpyAsync(copy_to.get(), copy_from.get(), numbers * 3 / 2, cudaMemcpyDeviceToDevice,
                            nullptr));
    check(cudaStreamSynchronize(nullptr));
    return std::uint64_t{0};
  };
  bench::compare(
      o, whole, [&] { return kernels(work); }, [&] { return copies(bytes_in); });

  std::vector<ps::image_choice> choices(slots);
  for (std::uint64_t i = 0; i < slots; ++i) {
    ps::rng random(1, 0, i);
    ps::image_choice& one = choices[i];
    one.x = static_cast<std::int64_t>(random.below(side - cropped + 1));
    one.y = static_cast<std::int64_t>(random.below(side - cropped + 1));
    one.right = one.bottom = cropped;
    if (!random.chance(0.5)) continue;
    one.mirrored = 1;
    one.x += cropped - 1;
  }
  check(cudaMemcpy(table.get(), choices.data(), slots * sizeof(ps::image_choice), cudaMemcpyHostToDevice));
  work.choices = static_cast<const ps::image_choice*>(table.get());
  work.width = work.height = cropped;
  bench::compare(
      o, augmented, [&] { return kernels(work); },
      [&] { return copies(slots * cropped * cropped * channels); });
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, measure); }
