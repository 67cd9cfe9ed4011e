// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Part of the sweep: every allocation of codecs of images and of operations fails in turn, and so does every
// one that the C libraries ask malloc for.

#include <penstock/codec/image_of.hpp>
#include <penstock/codec/jpeg.hpp>
#include <penstock/codec/jpeg_encoder.hpp>
#include <penstock/codec/png.hpp>
#include <penstock/codec/png_encoder.hpp>
#include <penstock/codec/webp.hpp>
#include <penstock/codec/webp_encoder.hpp>
#include <penstock/image.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/bad_samples.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/image_codec_test.hpp"
#include "support/raw_png.hpp"
#include "sweep/sweep.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace ps = penstock;
using namespace penstock_sweep;

namespace {

countdown c_allocations;  // of malloc, calloc and realloc, also by operator new
std::atomic<std::int64_t> c_live{0};

}  // namespace

// The sanitizers have functions of their own under these names, and only glibc names those behind them.
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
void __libc_free(void* memory);

void* malloc(std::size_t size) noexcept {
  void* const memory = c_allocations.pass() ? __libc_malloc(size) : nullptr;
  if (memory != nullptr) c_live.fetch_add(1, std::memory_order_relaxed);
  return memory;
}
void* calloc(std::size_t count, std::size_t size) noexcept {
  void* const memory = c_allocations.pass() ? __libc_calloc(count, size) : nullptr;
  if (memory != nullptr) c_live.fetch_add(1, std::memory_order_relaxed);
  return memory;
}
void* realloc(void* memory, std::size_t size) noexcept {
  void* const moved = c_allocations.pass() ? __libc_realloc(memory, size) : nullptr;
  if (memory == nullptr && moved != nullptr) c_live.fetch_add(1, std::memory_order_relaxed);
  return moved;
}
void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  void* const memory = c_allocations.pass() ? __libc_memalign(alignment, size) : nullptr;
  if (memory != nullptr) c_live.fetch_add(1, std::memory_order_relaxed);
  return memory;
}
void free(void* memory) noexcept {
  if (memory != nullptr) c_live.fetch_sub(1, std::memory_order_relaxed);
  __libc_free(memory);
}
}
#endif

namespace {

using bytes = std::vector<std::byte>;

bytes copied(ps::bytes_view file) { return {file.begin(), file.end()}; }
bytes cut(bytes file) {
  file.resize(file.size() * 4 / 5);
  return file;
}

/// Small files of each kind; the damaged ones are last.
struct files {
  std::vector<bytes> good, damaged;

  explicit files(bool lossless) {
    const auto pixels = image_codec_test::some_picture<std::uint8_t>({37, 29}, 3, 8);
    ps::jpeg_encoder jpeg;
    ps::png_encoder png;
    ps::webp_encoder webp;
    good.push_back(copied(jpeg.encode(pixels.view<3>())));
    good.push_back(copied(jpeg.encode(pixels.view<3>(), {.progressive = true})));
    good.push_back(copied(png.encode(pixels.view<3>(), {.shown = ps::orientation::rotated_270})));
    good.push_back(copied(ps::bytes_of(penstock_test::raw_png{37, 29, 8, 2, true}.of_samples(
        {pixels.values.begin(), pixels.values.end()}))));
    good.push_back(copied(webp.encode(pixels.view<3>())));
    if (lossless) good.push_back(copied(webp.encode(pixels.view<3>(), {.lossless = true})));
    for (const bytes& one : good) damaged.push_back(cut(one));
  }
};

using image = ps::image_of<ps::jpeg, ps::png, ps::webp>;
const image lenient(ps::jpeg{.recover = true, .dct_scaling = true}, ps::png{.recover = true},
                    ps::webp{.recover = true});

template <class Test>
void on_images(unsigned workers, bool lossless, Test test) {
  const files all(lossless);
  INFO(workers << " workers");
  const auto good = ps::from(all.good);
  test("resized", [=] {
    return good | ps::decode<image> | ps::map(ps::random_resized_crop(8), ps::horizontal_flip()) |
           ps::batch(2) | ps::workers(workers);
  });
  test("all the geometry", [=] {
    return good | ps::decode<image> |
           ps::map(ps::resize(24, 20), ps::random_crop(18, {.padding = 2}), ps::pad(1), ps::rotate({-30, 30}),
                   ps::gaussian_blur(3), ps::vertical_flip(), ps::center_crop(16)) |
           ps::batch(3) | ps::workers(workers);
  });
  test("colours, to floats", [=] {
    return good | ps::decode<image> |
           ps::map(ps::center_crop(12), ps::color_jitter(0.4, 0.4, 0.4, 0.1), ps::trivial_augment(),
                   ps::normalize(ps::imagenet), ps::to_chw()) |
           ps::batch(2) | ps::workers(workers);
  });
  test("damaged files, recovered", [=] {
    return ps::from(all.damaged) | ps::decode<image>(lenient) | ps::map(ps::resize(8, 8)) | ps::batch(2) |
           ps::workers(workers);
  });
  test("damaged files, skipped", [=] {
    std::vector<bytes> both = all.good;
    both.insert(both.begin() + 1, all.damaged.begin(), all.damaged.end());
    return ps::from(std::move(both)) | ps::decode<image> | ps::map(ps::resize(8, 8)) |
           ps::bad_samples::skip(100) | ps::batch(2) | ps::workers(workers);
  });
}

}  // namespace

TEST_CASE("images: every allocation of codecs and operations fails in turn") {
  const penstock_test::deadline guard("allocations of images fail", std::chrono::seconds(250));
  std::uint64_t points = 0;
  for (const unsigned workers : {0u, 2u})
    on_images(workers, true, [&](const char* name, auto make) {
      INFO(name);
      points += sweep(allocations, make);
    });
  WARN(points << " allocations failed");
  CHECK(points > 300);
}

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// In the consumer's thread only: the system's own code aborts if it gets no memory for a thread. Without
// lossless WebP, whose decoder in libwebp 1.2.4 uses a table that it got no memory for.
TEST_CASE("images: every call of malloc, also by the C libraries, fails in turn") {
  const penstock_test::deadline guard("calls of malloc fail", std::chrono::seconds(250));
  std::uint64_t points = 0, by_libraries = 0;
  on_images(0, false, [&](const char* name, auto make) {
    INFO(name);
    const std::uint64_t ours = sweep(allocations, make);
    (void)sweep(c_allocations,
                make);  // the C library keeps some memory, which is no loss: the second time, none
    const std::int64_t before = c_live;
    const std::uint64_t failed = sweep(c_allocations, make);
    CHECK(c_live == before);
    points += failed;
    by_libraries += failed - ours;
  });
  WARN(points << " calls of malloc failed, " << by_libraries << " of them by libraries");
  CHECK(by_libraries > 20);
}
#endif
