// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The logic of the device, with a fake runtime that needs no GPU. tests/gpu uses the real one.

#include <penstock/device/cuda.hpp>

#include "support/catch.hpp"
#include "support/cuda_test.hpp"

#include <penstock/integration/to_dlpack.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/memory.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ps = penstock;
using penstock_test::contains;
using penstock_test::fake_cuda;
using penstock_test::fresh_fake;
using penstock_test::numbers;
using penstock_test::on_device;

static_assert(ps::device<ps::cuda> && ps::cuda::session::copies, "a GPU is a device that copies");

namespace {

/// What kernels on a stream see of all batches of a plan, if each batch is dropped as soon as its
/// kernels are launched.
template <class Plan>
std::vector<int> seen_by_kernels(const Plan& plan, cudaStream_t stream, bool says_so = false) {
  std::vector<int> seen;
  auto run = plan.open();
  for (auto epoch : run.epochs(2)) {
    for (auto&& b : epoch) {
      if constexpr (requires { b.on(stream); }) {
        if (says_so) b.on(stream);
      }
      const void* const data = b.device_data();
      const std::size_t count = b.size();
      fake_cuda::get().launch(stream, [&seen, data, count] {
        const std::vector<int> values = on_device<int>(data, count);
        seen.insert(seen.end(), values.begin(), values.end());
      });
    }
  }
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  return seen;
}

std::vector<int> twice(std::vector<int> values) {
  const std::vector<int> once = values;
  values.insert(values.end(), once.begin(), once.end());
  return values;
}

std::string message_of(const ps::cuda& given) {
  try {
    auto session = given.connect();
  } catch (const ps::error& e) {
    return e.what();
  }
  return "";
}

std::size_t place(const std::vector<std::string>& log, const std::string& name, std::size_t from_here = 0) {
  const auto found = std::find(log.begin() + static_cast<std::ptrdiff_t>(from_here), log.end(), name);
  return static_cast<std::size_t>(found - log.begin());
}

}  // namespace

TEST_CASE("device/cuda: columns arrive whole, at multiples of 256 bytes") {
  const fresh_fake fake;
  auto session = ps::cuda{.wait = ps::cuda_wait::host}.connect();
  ps::cuda::session::transfer transfer;
  CHECK(session.data(transfer, 0) == nullptr);
  const std::vector<int> first = numbers(100), third = numbers(3);
  const std::vector<ps::bytes_view> columns{std::as_bytes(std::span(first)), ps::bytes_view{},
                                            std::as_bytes(std::span(third))};
  session.start(transfer, columns);
  session.wait(transfer);
  CHECK(on_device<int>(session.data(transfer, 0), 100) == first);
  CHECK(on_device<int>(session.data(transfer, 2), 3) == third);
  const auto begin = reinterpret_cast<std::uintptr_t>(session.data(transfer, 0));
  CHECK(reinterpret_cast<std::uintptr_t>(session.data(transfer, 2)) - begin == 512);

  // fewer columns reuse the memory, then more than it can hold
  const std::uint64_t before = fake.fake.count["cudaMalloc"];
  session.reuse(transfer);
  session.start(transfer, std::vector<ps::bytes_view>{std::as_bytes(std::span(third))});
  session.wait(transfer);
  CHECK(on_device<int>(session.data(transfer, 0), 3) == third);
  CHECK(fake.fake.count["cudaMalloc"] == before);
  const std::vector<int> large = numbers(10'000);
  session.reuse(transfer);
  session.start(transfer, std::vector<ps::bytes_view>{std::as_bytes(std::span(large))});
  session.wait(transfer);
  CHECK(on_device<int>(session.data(transfer, 0), 10'000) == large);
  CHECK(fake.fake.count["cudaMalloc"] == before + 1);
  CHECK(fake.fake.device_memory.size() == 1);
}

TEST_CASE("device/cuda: the calls of one batch, in order") {
  const fresh_fake fake;
  auto session = ps::cuda{}.connect();
  ps::cuda::session::transfer transfer;
  const std::vector<int> values = numbers(10);
  const std::vector<ps::bytes_view> columns{std::as_bytes(std::span(values))};
  session.start(transfer, columns);
  fake.fake.log.clear();
  session.wait(transfer);
  CHECK(place(fake.fake.log, "cudaStreamWaitEvent") < fake.fake.log.size());
  CHECK(place(fake.fake.log, "cudaEventSynchronize") == fake.fake.log.size());  // the host does not wait
  session.reuse(transfer);
  const std::size_t synchronized = place(fake.fake.log, "cudaEventSynchronize");
  CHECK(synchronized < place(fake.fake.log, "cudaEventRecord", synchronized));
  fake.fake.log.clear();
  session.start(transfer, columns);
  const std::size_t waits = place(fake.fake.log, "cudaStreamWaitEvent"),
                    copies = place(fake.fake.log, "cudaMemcpyAsync");
  CHECK(waits < copies);
  CHECK(copies < place(fake.fake.log, "cudaEventRecord"));
  CHECK(place(fake.fake.log, "cudaEventRecord") < fake.fake.log.size());

  // a copy that was never requested is waited for before its memory is freed
  {
    ps::cuda::session::transfer unasked;
    session.start(unasked, columns);
    fake.fake.log.clear();
  }
  CHECK(place(fake.fake.log, "cudaEventSynchronize") < place(fake.fake.log, "cudaFree"));
  CHECK(place(fake.fake.log, "cudaFree") < fake.fake.log.size());
}

TEST_CASE("device/cuda: kernels see every batch, however late they run") {
  const fresh_fake fake;
  const fresh_fake::stream training;
  const std::vector<int> all = numbers(200);
  for (const unsigned threads : {0u, 2u}) {
    for (const std::uint64_t depth : {1u, 2u, 4u}) {
      const auto batches = ps::from(all) | ps::workers(threads) | ps::batch(7) | ps::prefetch(depth);
      CHECK(seen_by_kernels(batches | ps::pin_and_copy(ps::cuda{.stream = training.it}), training.it) ==
            twice(all));
      CHECK(seen_by_kernels(batches | ps::pin_and_copy(ps::cuda{}), nullptr) == twice(all));
      // a stream other than the device's is announced batch by batch
      CHECK(seen_by_kernels(batches | ps::pin_and_copy(ps::cuda{}), training.it, true) == twice(all));
      CHECK(seen_by_kernels(
                batches | ps::pin_and_copy(ps::cuda{.stream = training.it, .wait = ps::cuda_wait::host}),
                training.it) == twice(all));
    }
  }
}

TEST_CASE("device/cuda: the fake would notice a missing wait") {
  const fresh_fake fake;
  const fresh_fake::stream training, other;
  const auto plan = ps::from(numbers(200)) | ps::workers(0) | ps::batch(7) | ps::prefetch(2) |
                    ps::pin_and_copy(ps::cuda{.stream = training.it});
  CHECK(seen_by_kernels(plan, other.it, false) != twice(numbers(200)));
}

TEST_CASE("device/cuda: batches that are gathered from chunks arrive too") {
  const fresh_fake fake;
  const fresh_fake::stream training;
  std::vector<int> odd;
  for (const int x : numbers(300))
    if (x % 2 != 0) odd.push_back(x);
  for (const unsigned threads : {0u, 2u}) {
    const auto plan = ps::from(numbers(300)) | ps::filter([](int x) { return x % 2 != 0; }) |
                      ps::workers(threads) | ps::batch(8) | ps::pin_and_copy(ps::cuda{.stream = training.it});
    CHECK(seen_by_kernels(plan, training.it) == twice(odd));
  }
}

TEST_CASE("device/cuda: with a memory bound no copy reads freed memory") {
  const fresh_fake fake;
  const fresh_fake::stream training;
  std::vector<std::vector<int>> rows;  // rows that grow, so that memory is freed and allocated again
  std::vector<int> flat;
  for (int i = 1; i <= 60; ++i) {
    rows.push_back(numbers(i * 5));
    flat.insert(flat.end(), rows.back().begin(), rows.back().end());
  }
  std::vector<int> seen;
  auto run = (ps::from(rows) | ps::workers(0) | ps::memory(6'000) | ps::batch(2, ps::ragged) |
              ps::pin_and_copy(ps::cuda{.stream = training.it}))
                 .open();
  for (auto&& b : run) {
    const void* const data = b.device_data();
    std::size_t count = 0;
    for (std::size_t i = 0; i < b.size(); ++i) count += b.values()[i].size();
    fake.fake.launch(training.it, [&seen, data, count] {
      const auto values = on_device<int>(data, count);
      seen.insert(seen.end(), values.begin(), values.end());
    });
  }
  REQUIRE(cudaStreamSynchronize(training.it) == cudaSuccess);
  CHECK(seen == flat);
}

TEST_CASE("device/cuda: nothing is allocated once every batch in flight has been used") {
  const fresh_fake fake;
  auto run =
      (ps::from(numbers(64)) | ps::workers(0) | ps::batch(8) | ps::prefetch(3) | ps::pin_and_copy(ps::cuda{}))
          .open();
  std::uint64_t made = 0;
  const auto all_made = [&] {
    return fake.fake.count["cudaMalloc"] + fake.fake.count["cudaHostAlloc"] +
           fake.fake.count["cudaEventCreateWithFlags"] + fake.fake.count["cudaStreamCreateWithFlags"];
  };
  for (auto epoch : run.epochs(5)) {
    for (auto&& b : epoch) CHECK(b.device_data() != nullptr);
    if (made == 0) made = all_made();
  }
  CHECK(all_made() == made);
}

TEST_CASE("device/cuda: a batch may outlive its run") {
  const fresh_fake fake;
  const auto kept = [&] {
    auto run = (ps::from({1, 2, 3}) | ps::workers(1) | ps::batch(3) |
                ps::pin_and_copy(ps::cuda{.wait = ps::cuda_wait::host}))
                   .open();
    return std::move(*run.begin());
  }();
  CHECK(on_device<int>(kept.device_data(), 3) == std::vector<int>{1, 2, 3});
}

TEST_CASE("device/cuda: a device is chosen, and the thread's own device is restored") {
  const fresh_fake fake;
  const auto use = [](const ps::cuda& given) {
    std::optional<int> where;
    auto run = (ps::from(numbers(20)) | ps::workers(1) | ps::batch(4) | ps::pin_and_copy(given)).open();
    for (auto&& b : run) {
      CHECK(fake_cuda::current() == 0);
      where = fake_cuda::get().device_memory.begin()->second;
      CHECK(b.device_data() != nullptr);
    }
    for (const CUstream_st* stream : fake_cuda::get().streams) CHECK(stream->device == *where);
    return where.value_or(-1);
  };
  CHECK(use(ps::cuda{}) == 0);
  CHECK(use(ps::cuda{.device = 1}) == 1);
  CHECK(fake_cuda::current() == 0);
  CHECK(ps::cuda{}.describe() == "cuda, the current device, the stream waits, slots and workers on its node");
  CHECK(ps::cuda{.device = 1, .wait = ps::cuda_wait::host, .numa = ps::cuda_numa::off}.describe() ==
        "cuda device 1, the host waits");
  CHECK(ps::cuda{.device = 1, .numa = ps::cuda_numa::always}.describe() ==
        "cuda device 1, the stream waits, slots and all workers on its node");
}

TEST_CASE("device/cuda: tensors of DLPack name the device, and a stream waits for them") {
  const fresh_fake fresh;
  const fresh_fake::stream stream(1), other(1);
  std::vector<int> seen;
  {
    const auto plan =
        ps::from(numbers(64)) | ps::batch(16) | ps::pin_and_copy(ps::cuda{.device = 1, .stream = stream.it});
    auto run = plan.open();
    for (auto&& b : run.epoch(0)) {
      const ps::dlpack_tensor there = ps::to_dlpack(b, other.it), here = ps::to_dlpack_host(b);
      CHECK(there->device == ps::dlpack::device{ps::dlpack::device_type::cuda, 1});
      CHECK(here->device == ps::dlpack::device{ps::dlpack::device_type::cuda_host, 0});
      CHECK(there->data == b.device_data());
      CHECK(here->data == b.values().data());
      fake_cuda::get().launch(other.it, [&seen, data = there->data] {
        const std::vector<int> values = on_device<int>(data, 16);
        seen.insert(seen.end(), values.begin(), values.end());
      });
    }
    REQUIRE(cudaStreamSynchronize(other.it) == cudaSuccess);
  }
  CHECK(seen == numbers(64));
}

TEST_CASE("device/cuda: errors of opening say what to do") {
  const fresh_fake fake;
  CHECK_THAT(message_of({.device = 2}), contains("there is no CUDA device 2: this process sees 2"));
  CHECK_THAT(message_of({.device = -7}), contains("CUDA_VISIBLE_DEVICES"));
  {
    const fresh_fake::stream elsewhere(1);
    CHECK_THAT(message_of({.device = 0, .stream = elsewhere.it}),
               contains("cudaErrorInvalidResourceHandle") && contains("cuda{.device = ...}"));
    CHECK(message_of({.device = 1, .stream = elsewhere.it}).empty());
  }
  fake.fake.on_count = cudaErrorNoDevice;
  CHECK_THAT(message_of({}), contains("cudaErrorNoDevice") && contains("nvidia-smi"));
  fake.fake.on_count = cudaErrorInsufficientDriver;
  CHECK_THAT(message_of({}), contains("cudaErrorInsufficientDriver") && contains("install a driver"));
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("device/cuda: a failed allocation is an error with its size") {
  const fresh_fake fake;
  const auto plan = ps::from(numbers(16)) | ps::workers(0) | ps::batch(16) | ps::pin_and_copy(ps::cuda{});
  fake.fake.fail_with = cudaErrorMemoryAllocation;
  bool host = false, device = false;
  for (std::uint64_t n = 1; n < 60; ++n) {
    fake.fake.calls = 0;
    fake.fake.fail_at = n;
    try {
      for (auto&& b : plan) CHECK(b.size() == 16);
    } catch (const ps::error& e) {
      const std::string what = e.what();
      CHECK_THAT(what, contains("cudaErrorMemoryAllocation (out of memory); lower prefetch(n)"));
      host = host || what.find("pinning 4096 bytes") != std::string::npos;
      device = device || what.find("allocating 256 bytes on the device") != std::string::npos;
    }
  }
  CHECK(host);
  CHECK(device);
}

TEST_CASE("device/cuda: whichever call fails, there is one error and nothing is left behind") {
  const fresh_fake fake;
  const std::vector<int> all = numbers(60);
  const auto sweep = [&](const auto& plan) {
    std::uint64_t failed = 0;
    for (std::uint64_t n = 1;; ++n) {
      fake.fake.calls = 0;
      fake.fake.fail_at = n;
      std::vector<int> seen;
      std::string what;
      try {
        auto run = plan.open();
        for (auto&& b : run) {
          const auto values = b.values();
          seen.insert(seen.end(), values.begin(), values.end());
        }
      } catch (const ps::error& e) {
        what = e.what();
        CHECK(e.code() == ps::errc::io);
      }
      REQUIRE(fake.fake.live() == 0);
      REQUIRE(fake_cuda::current() == 0);
      REQUIRE(std::equal(seen.begin(), seen.end(), all.begin()));  // no batch is missing before the error
      if (what.empty()) {
        if (fake.fake.calls < n) {
          CHECK(seen == all);
          break;
        }
        continue;  // failed while releasing, which cannot be reported
      }
      CHECK_THAT(what, contains("failed with cudaErrorLaunchFailure"));
      CHECK(fake.fake.last == cudaSuccess);
      ++failed;
    }
    CHECK(failed > 40);
  };
  for (const unsigned threads : {0u, 1u}) {
    sweep(ps::from(all) | ps::workers(threads) | ps::batch(10) | ps::prefetch(2) |
          ps::pin_and_copy(ps::cuda{.device = 1}));
    sweep(ps::from(all) | ps::filter([](int) { return true; }) | ps::workers(threads) | ps::batch(10) |
          ps::pin_and_copy(ps::cuda{.wait = ps::cuda_wait::host}));
  }
}

TEST_CASE("device/cuda: a failed run delivers nothing more") {
  const fresh_fake fake;
  const auto plan = ps::from(numbers(60)) | ps::workers(0) | ps::batch(10) | ps::pin_and_copy(ps::cuda{});
  auto run = plan.open();
  fake.fake.fail_with = cudaErrorLaunchFailure;
  int before = 0;
  const auto until_it_fails = [&] {
    for (auto&& b : run) {
      before += static_cast<int>(b.size());
      fake.fake.calls = 0;
      fake.fake.fail_at = 1;
    }
  };
  CHECK_THROWS_AS(until_it_fails(), ps::error);
  CHECK(before == 10);
  int more = 0;
  for (auto&& b : run) more += static_cast<int>(b.size());
  CHECK(more == 0);
}
