// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The device with CUDA's own runtime. Without a GPU it is only compiled and linked, and says so.

#include <penstock/device/cuda.hpp>

#include "support/catch.hpp"

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

namespace ps = penstock;

namespace {

/// Whether there is a GPU; a machine without one is not a failure, not even in CI.
bool have_gpu() {
  int devices = 0;
  const cudaError_t code = cudaGetDeviceCount(&devices);
  if (code == cudaSuccess && devices > 0) return true;
  static_cast<void>(cudaGetLastError());
  WARN("not run: there is no GPU (" << cudaGetErrorName(code) << ")");
  return false;
}

struct free_on_device {
  void operator()(int* memory) const { cudaFree(memory); }
};

/// What work on a stream finds in all batches of a plan, if each is dropped as soon as the work is
/// queued.
template <class Plan>
std::vector<int> collected(const Plan& plan, cudaStream_t stream, std::size_t total) {
  void* memory = nullptr;
  REQUIRE(cudaMalloc(&memory, total * sizeof(int)) == cudaSuccess);
  const std::unique_ptr<int, free_on_device> all(static_cast<int*>(memory));
  std::size_t filled = 0;
  auto run = plan.open();
  for (auto&& b : run) {
    REQUIRE(filled + b.size() <= total);
    REQUIRE(cudaMemcpyAsync(all.get() + filled, b.device_data(), b.size() * sizeof(int),
                            cudaMemcpyDeviceToDevice, stream) == cudaSuccess);
    filled += b.size();
  }
  std::vector<int> found(filled);
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  REQUIRE(cudaMemcpy(found.data(), all.get(), filled * sizeof(int), cudaMemcpyDeviceToHost) == cudaSuccess);
  return found;
}

}  // namespace

TEST_CASE("gpu/cuda: batches arrive, in stream order and without waiting for the host") {
  if (!have_gpu()) return;
  std::vector<int> values(1'000'000);
  std::iota(values.begin(), values.end(), 0);
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  for (const unsigned threads : {0u, 2u}) {
    for (const ps::cuda_wait who : {ps::cuda_wait::stream, ps::cuda_wait::host}) {
      const auto batches = ps::from(values) | ps::workers(threads) | ps::batch(10'000) | ps::prefetch(3);
      CHECK(collected(batches | ps::pin_and_copy(ps::cuda{.stream = stream, .wait = who}), stream,
                      values.size()) == values);
      CHECK(collected(batches | ps::pin_and_copy(ps::cuda{.device = 0, .wait = who}), nullptr,
                      values.size()) == values);
    }
    const auto gathered = ps::from(values) | ps::filter([](int x) { return x >= 0; }) | ps::workers(threads) |
                          ps::batch(10'000);
    CHECK(collected(gathered | ps::pin_and_copy(ps::cuda{.stream = stream}), stream, values.size()) ==
          values);
  }
  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("gpu/cuda: slots are pinned") {
  if (!have_gpu()) return;
  auto session = ps::cuda{}.connect();
  void* const memory = session.allocate(1000);
  CHECK(reinterpret_cast<std::uintptr_t>(memory) % 64 == 0);
  cudaPointerAttributes facts{};
  REQUIRE(cudaPointerGetAttributes(&facts, memory) == cudaSuccess);
  CHECK(facts.type == cudaMemoryTypeHost);
  session.deallocate(memory, 1000);
}

TEST_CASE("gpu/cuda: a run's slots are registered, in large pieces too") {
  if (!have_gpu()) return;
  const std::vector<int> values(4'000'000, 7);
  auto run = (ps::from(values) | ps::workers(2) | ps::batch(1'300'000) | ps::cuda::pin_and_copy).open();
  std::size_t seen = 0;
  for (auto&& b : run) {
    cudaPointerAttributes facts{};
    REQUIRE(cudaPointerGetAttributes(&facts, b.values().data() + b.size() - 1) == cudaSuccess);
    CHECK(facts.type == cudaMemoryTypeHost);
    seen += b.size();
  }
  CHECK(seen == values.size());
}

TEST_CASE("gpu/cuda: every device of the process, each with a run") {
  if (!have_gpu()) return;
  int devices = 0, before = 0, after = 0;
  REQUIRE(cudaGetDeviceCount(&devices) == cudaSuccess);
  REQUIRE(cudaGetDevice(&before) == cudaSuccess);
  std::vector<int> values(100'000);
  std::iota(values.begin(), values.end(), 0);
  for (int number = 0; number < devices; ++number) {
    auto run = (ps::from(values) | ps::workers(1) | ps::batch(10'000) |
                ps::cuda::pin_and_copy(ps::cuda{.device = number, .wait = ps::cuda_wait::host}))
                   .open();
    for (auto&& b : run) {
      CHECK(b.device_number() == number);
      cudaPointerAttributes facts{};
      REQUIRE(cudaPointerGetAttributes(&facts, b.device_data()) == cudaSuccess);
      CHECK(facts.device == number);
    }
  }
  REQUIRE(cudaGetDevice(&after) == cudaSuccess);
  CHECK(after == before);
}

TEST_CASE("gpu/cuda: a stream of another device is refused") {
  int devices = 0;
  if (!have_gpu() || cudaGetDeviceCount(&devices) != cudaSuccess || devices < 2) {
    WARN("not run: there is one GPU at most");
    return;
  }
  cudaStream_t elsewhere = nullptr;
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  REQUIRE(cudaStreamCreateWithFlags(&elsewhere, cudaStreamNonBlocking) == cudaSuccess);
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
  auto run =
      (ps::from(std::vector<int>(100)) | ps::workers(0) | ps::batch(10) | ps::cuda::pin_and_copy).open();
  for (auto&& b : run) CHECK_THROWS_AS(b.on(elsewhere), ps::error);
  CHECK_THROWS_AS(ps::cuda{.stream = elsewhere}.connect(), ps::error);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(cudaStreamDestroy(elsewhere) == cudaSuccess);
}

TEST_CASE("gpu/cuda: a device that cannot be opened is a penstock error") {
  std::string what;
  try {
    auto session = ps::cuda{.device = 10'000}.connect();
  } catch (const ps::error& e) {
    what = e.what();
  }
  INFO(what);
  CHECK((what.find("there is no CUDA device 10000") != std::string::npos ||
         what.find("looking for CUDA devices failed with cudaError") != std::string::npos));
}
