// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row 30: what the engine itself takes of the training loop's thread for a batch on its way to a GPU, with a
// stand-in for the CUDA runtime, in which copies cost nothing. Batches are 256 images of 224 x 224 x 3 bytes
// and their labels; the worker writes one byte of each image. Counted is the processor time of the thread
// that asks for batches, from dropping one to having the next: it opens blocks, starts copies, makes the
// stream wait, and hands out. Row 30b is the same with random crops and flips on the device: the loop's
// thread draws for 256 images and copies a table; the kernel is not run. In between it lets 100 us pass, so
// that a batch is always ready. No GPU takes part, and what the calls of a real runtime take comes on top.

#include "support/fake_cuda.hpp"
#include "support/harness.hpp"

#include <penstock/core/destination.hpp>
#include <penstock/device/cuda.hpp>
#include <penstock/device/image/operations.hpp>
#include <penstock/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/on_device.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/workers.hpp>

#include <ctime>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace ps = penstock;

void penstock::launch_image_work(const image_work& work, CUstream_st*) { bench::escape(&work); }

namespace {

/// An image of which one byte is written.
struct blank_image {
  using unfinished = void;
  using value_type = std::uint8_t;
  static constexpr ps::extents static_shape{224, 224, 3};
  std::uint8_t first;

  [[nodiscard]] static constexpr ps::extents shape() { return static_shape; }
  void write_to(std::uint8_t* into) const { *into = first; }
};
using sample = ps::record<ps::field<"image", blank_image>, ps::field<"label", std::int64_t>>;

double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Microseconds that the loop's thread works for a batch, one figure per epoch.
template <class Stage>
std::vector<double> of_loop(const bench::options& o, const Stage& stage) {
  const std::uint64_t batches = o.quick ? 50 : 1000;
  auto run =
      (ps::generated(256 * batches,
                     [](std::uint64_t i) {
                       return sample(blank_image{static_cast<std::uint8_t>(i)}, static_cast<std::int64_t>(i));
                     }) |
       ps::batch(256) | ps::workers(1) | stage)
          .open();
  std::vector<double> all;
  for (int number = -1; number < o.pairs; ++number) {
    auto epoch = run.epoch(static_cast<std::uint64_t>(number + 1));
    double spent = 0;
    auto at = epoch.begin();
    for (bool more = at != epoch.end(); more;) {
      bench::escape((*at).device_data());
      for (const double begin = bench::seconds_now(); bench::seconds_now() - begin < 100e-6;) {
      }
      const double begin = processor_seconds();
      ++at;
      more = at != epoch.end();  // asks for the batch
      spent += processor_seconds() - begin;
    }
    if (number >= 0) all.push_back(1e6 * spent / static_cast<double>(batches));  // the first epoch pins
  }
  return all;
}

void measure(const bench::options& o) {
  const bench::row engine{"30", "the engine's share of a batch on its way to a GPU, without the GPU, us", 50,
                          true};
  const bench::row drawing{"30b", "the same with random crops and flips on the device, us", 50, true};
  penstock_test::fake_cuda::get().counts = false;
  const auto rounded = [](double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3g us", value);
    return std::string(text);
  };
  const auto print = [&](const bench::row& r, const auto& stages) {
    if (!o.wants(r.id)) return;
    const std::vector<double> copied = of_loop(o, stages), host = of_loop(o, ps::pin_and_copy);
    bench::print_row(r, bench::quantile(copied, 0.75), bench::quantile(copied, 0.5),
                     "processor time of the loop's thread, of which " + rounded(bench::quantile(host, 0.5)) +
                         " also without a device; " + std::to_string(o.pairs) + " epochs");
  };
  print(engine, ps::cuda::pin_and_copy);
  print(drawing, ps::cuda::pin_and_copy | ps::on_device<"image">(ps::random_crop(200), ps::horizontal_flip(),
                                                                 ps::normalize(ps::imagenet), ps::to_half(),
                                                                 ps::to_chw()));
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, measure); }
