// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The kernels of on_device on a GPU: every bit that they make is that of the same operations on the host.
// Without a GPU it is only compiled and linked, and exits with status 77.

#include <penstock/device/cuda.hpp>
#include <penstock/device/image/operations.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/on_device.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

namespace ps = penstock;

namespace {

void check(cudaError_t code) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "CUDA: %s\n", cudaGetErrorString(code));
  std::exit(1);
}

/// An image of noise that depends on its index.
template <std::size_t Channels>
class noise : public ps::image_expression<noise<Channels>, std::uint8_t, Channels> {
 public:
  using base = ps::image_expression<noise<Channels>, std::uint8_t, Channels>;
  using typename base::view_type;
  noise(const ps::image_size& size, std::uint64_t index) : size_(size), index_(index) {}

  [[nodiscard]] ps::image_size size() const { return size_; }
  [[nodiscard]] ps::image_scratch& memory() const {
    thread_local ps::image_scratch scratch;
    return scratch;
  }
  [[nodiscard]] view_type read(const ps::image_part& part) const {
    thread_local std::vector<std::uint8_t> pixels;
    pixels.resize(std::size_t{size_.width} * size_.height * Channels);
    for (std::size_t i = 0; i < pixels.size(); ++i)
      pixels[i] = static_cast<std::uint8_t>(ps::mix64(index_ * 1'000'003 + i));
    return view_type(pixels.data(), size_).part(part);
  }

 private:
  ps::image_size size_;
  std::uint64_t index_;
};

/// All bytes that the device has after an epoch.
template <class Plan>
std::vector<std::byte> seen(const Plan& plan) {
  std::vector<std::byte> all;
  auto run = plan.open();
  for (auto epoch : run.epochs(1)) {
    for (auto&& b : epoch) {
      const auto view = b.device_view();
      const std::size_t before = all.size(), bytes = view.size() * sizeof(*view.data());
      all.resize(before + bytes);
      check(cudaStreamSynchronize(nullptr));
      check(cudaMemcpy(all.data() + before, view.data(), bytes, cudaMemcpyDeviceToHost));
    }
  }
  return all;
}

int wrong = 0, compared = 0;

template <std::size_t Channels, class... Ops>
void compare(const ps::image_size& size, const Ops&... ops) {
  const auto images =
      ps::generated(13, [size](std::uint64_t i) { return noise<Channels>(size, i); }) | ps::workers(2);
  const auto copied = ps::batch(5, ps::tail::pad) | ps::prefetch(2) | ps::pin_and_copy(ps::cuda{});
  const bool same = seen(images | ps::map(ops...) | copied) == seen(images | copied | ps::on_device(ops...));
  ++compared;
  if (same) return;
  ++wrong;
  std::printf("comparison %d: %u x %u with %zu channels differs\n", compared, size.width, size.height,
              Channels);
}

template <std::size_t Channels>
void compare_all() {
  for (const ps::image_size size : {ps::image_size{224, 224}, {61, 37}, {28, 28}, {9, 8}}) {
    const auto normal = ps::normalize(0.45, 0.225);
    compare<Channels>(size, ps::to_chw());
    compare<Channels>(size, ps::horizontal_flip());
    compare<Channels>(size, ps::to_float());
    compare<Channels>(size, normal, ps::to_chw());
    compare<Channels>(size, normal, ps::to_half(), ps::to_chw());
    compare<Channels>(size, normal, ps::to_bfloat16());
    compare<Channels>(size, ps::random_crop(8), ps::horizontal_flip(), normal, ps::to_half(), ps::to_chw());
    compare<Channels>(size, ps::pad(3, {.fill = 7}), ps::vertical_flip(), ps::random_crop(8), normal,
                      ps::to_bfloat16(), ps::to_chw());
  }
}

}  // namespace

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("compiled, and not run: there is no GPU");
    return 77;
  }
  try {
    compare_all<1>();
    compare_all<2>();
    compare_all<3>();
    compare_all<4>();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  std::printf("%d comparisons, %d wrong\n", compared, wrong);
  return wrong == 0 ? 0 : 1;
}
