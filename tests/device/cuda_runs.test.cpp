// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Runs with GPUs as programs have them: several at once, copies beside kernels, devices that fail; with a
// fake runtime that needs no GPU.

#include <penstock/device/cuda.hpp>

#include "support/catch.hpp"
#include "support/cuda_test.hpp"

#include <penstock/inspection/describe.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <ranges>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace cuda_runs_test {

namespace ps = penstock;
using penstock_test::contains;
using penstock_test::fake_cuda;
using penstock_test::fresh_fake;
using penstock_test::numbers;
using penstock_test::on_device;

namespace {

template <class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const ps::error& e) {
    CHECK(e.code() == ps::errc::io);
    return e.what();
  }
  return "";
}

/// The sums of all batches on a device, as kernels on `stream` see them.
std::vector<int> sums_on(int device, cudaStream_t stream, int first) {
  std::vector<int> values = numbers(200), sums;
  for (int& x : values) x += first;
  auto run = (ps::from(values) | ps::workers(1) | ps::batch(20) |
              ps::cuda::pin_and_copy(ps::cuda{.device = device, .stream = stream}))
                 .open();
  for (auto&& b : run) {
    CHECK(b.device_number() == device);
    const void* const data = b.device_data();
    fake_cuda::get().launch(stream, [&sums, data] {
      int sum = 0;
      for (const int x : on_device<int>(data, 20)) sum += x;
      sums.push_back(sum);
    });
  }
  CHECK(fake_cuda::current() == 0);
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  return sums;
}
std::vector<int> sums_of(int first) {
  std::vector<int> sums;
  for (int batch = 0; batch < 10; ++batch) sums.push_back(20 * (first + 20 * batch) + 210);
  return sums;
}

/// How many kernels had run at most, of those launched on the batches before, when a batch was there. A copy
/// that the host waits for makes the fake do all that the copy has to come after.
template <class Plan>
std::ptrdiff_t latest_kernel(const Plan& plan, cudaStream_t stream) {
  std::ptrdiff_t done = 0, launched = 0, lead = 1000;
  auto run = plan.open();
  for (auto&& b : run) {
    if (launched > 3) lead = std::min(lead, launched - done);
    CHECK(b.device_data() != nullptr);
    fake_cuda::get().launch(stream, [&done] { ++done; });
    ++launched;
  }
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(done == launched);
  CHECK(launched > 10);
  return lead;
}

}  // namespace

TEST_CASE("device/cuda_runs: cuda::pin_and_copy is pin_and_copy(cuda{})") {
  const fresh_fake fake;
  const auto batches = ps::from(numbers(40)) | ps::batch(10);
  const auto plain = batches | ps::cuda::pin_and_copy;
  const auto given = batches | ps::pin_and_copy(ps::cuda{});
  static_assert(std::is_same_v<decltype(plain), decltype(given)>);
  CHECK(ps::describe(plain) == ps::describe(given));
  CHECK_THAT(ps::describe(plain), contains("device: cuda, the current device, the stream waits, slots and "
                                           "workers on its node"));
  int sum = 0;
  for (auto&& b : plain)
    for (const int x : b) sum += x;
  CHECK(sum == 820);
}

TEST_CASE("device/cuda_runs: two devices at once, from one thread") {
  const fresh_fake fake;
  const fresh_fake::stream zero(0), one(1);
  const auto plan_on = [&](int device, cudaStream_t stream) {
    return ps::from(numbers(200)) | ps::workers(1) | ps::batch(20) |
           ps::pin_and_copy(ps::cuda{.device = device, .stream = stream});
  };
  auto first = plan_on(0, zero.it).open();
  auto second = plan_on(1, one.it).open();
  std::vector<int> seen[2];
  auto at = first.begin();
  for (auto&& b : second) {
    REQUIRE(at != first.end());
    CHECK((*at).device_number() == 0);
    CHECK(b.device_number() == 1);
    CHECK(fake_cuda::current() == 0);
    const void* const there = (*at).device_data();
    const void* const here = b.device_data();
    CHECK(fake.fake.device_memory.size() >= 2);
    fake.fake.launch(zero.it, [&seen, there] {
      const auto values = on_device<int>(there, 20);
      seen[0].insert(seen[0].end(), values.begin(), values.end());
    });
    fake.fake.launch(one.it, [&seen, here] {
      const auto values = on_device<int>(here, 20);
      seen[1].insert(seen[1].end(), values.begin(), values.end());
    });
    ++at;
  }
  CHECK(at == first.end());
  REQUIRE(cudaStreamSynchronize(zero.it) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(one.it) == cudaSuccess);
  CHECK(seen[0] == numbers(200));
  CHECK(seen[1] == numbers(200));
}

TEST_CASE("device/cuda_runs: two devices at once, from two threads") {
  const fresh_fake fake;
  const fresh_fake::stream zero(0), one(1);
  std::vector<int> found;
  std::thread other([&] { found = sums_on(1, one.it, 1000); });
  const std::vector<int> mine = sums_on(0, zero.it, 0);
  other.join();
  CHECK(mine == sums_of(0));
  CHECK(found == sums_of(1000));
}

TEST_CASE("device/cuda_runs: a thread whose current device is another one keeps it") {
  const fresh_fake fake;
  const fresh_fake::stream zero(0);
  std::thread([&] {
    fake_cuda::current() = 1;
    auto run = (ps::from(numbers(40)) | ps::workers(1) | ps::batch(10) |
                ps::pin_and_copy(ps::cuda{.device = 0, .stream = zero.it}))
                   .open();
    for (auto&& b : run) {
      CHECK(b.device_number() == 0);
      CHECK(fake_cuda::current() == 1);
    }
    // the default is what is current in this thread
    auto here = (ps::from(numbers(40)) | ps::workers(1) | ps::batch(10) | ps::cuda::pin_and_copy).open();
    CHECK((*here.begin()).device_number() == 1);
  }).join();
}

TEST_CASE("device/cuda_runs: streams of other devices are refused, when opening and when used") {
  const fresh_fake fake;
  const fresh_fake::stream elsewhere(1), beside(0);
  const auto batches = ps::from(numbers(40)) | ps::workers(0) | ps::batch(10);
  CHECK_THAT(message_of([&] {
               auto run = (batches | ps::pin_and_copy(ps::cuda{.device = 0, .stream = elsewhere.it})).open();
             }),
             contains("cuda{.stream = ...} failed with cudaErrorInvalidResourceHandle") &&
                 contains("must belong to the device"));
  auto run = (batches | ps::cuda::pin_and_copy).open();
  int refused = 0, seen = 0;
  for (auto&& b : run) {
    b.on(beside.it);
    const std::string what = message_of([&] { b.on(elsewhere.it); });
    CHECK_THAT(what, contains("using a batch on another stream failed with cudaErrorInvalidResourceHandle") &&
                         contains("must belong to the device"));
    refused += what.empty() ? 0 : 1;
    seen += static_cast<int>(b.size());
  }
  CHECK(refused == 4);  // and the run goes on
  CHECK(seen == 40);
}

TEST_CASE("device/cuda_runs: by default a batch is copied while the one before it is computed on") {
  const fresh_fake fake;
  const fresh_fake::stream training;
  const ps::cuda given{.stream = training.it, .wait = ps::cuda_wait::host};
  const auto odd = ps::filter([](int x) { return x % 2 != 0; });
  for (const unsigned threads : {0u, 1u, 2u}) {
    CHECK(
        latest_kernel(ps::from(numbers(400)) | ps::workers(threads) | ps::batch(10) | ps::pin_and_copy(given),
                      training.it) >= 1);
    CHECK(latest_kernel(
              ps::from(numbers(400)) | odd | ps::workers(threads) | ps::batch(7) | ps::pin_and_copy(given),
              training.it) >= 1);
  }
}

TEST_CASE("device/cuda_runs: the counters of a run say how many batches are in flight") {
  const fresh_fake fake;
  const auto in_flight = [](const auto& plan) {
    auto run = plan.open();
    return run.counters().depth;
  };
  const auto batches = ps::from(numbers(400)) | ps::batch(10);
  CHECK(in_flight(batches | ps::workers(0) | ps::cuda::pin_and_copy) == 3);
  CHECK(in_flight(batches | ps::workers(1) | ps::cuda::pin_and_copy) == 4);
  CHECK(in_flight(batches | ps::workers(1) | ps::prefetch(6) | ps::cuda::pin_and_copy) == 7);
  CHECK(in_flight(batches | ps::workers(0) | ps::prefetch(1) | ps::pin_and_copy) == 2);
}

TEST_CASE("device/cuda_runs: every kind of failure is told apart, with what to do") {
  const fresh_fake fake;
  const auto plan = ps::from(numbers(60)) | ps::workers(1) | ps::batch(10) | ps::cuda::pin_and_copy;
  const auto said = [&](cudaError_t code) {
    fake.fake.reset();
    auto run = plan.open();
    std::string what = message_of([&] {
      for (auto&& b : run) {
        CHECK(b.size() == 10);
        fake.fake.fail_with = code;
        fake.fake.calls = 0;
        fake.fake.fail_at = 1;
      }
    });
    CHECK_THAT(what, contains("failed with cudaError"));
    return what;
  };
  CHECK_THAT(said(cudaErrorIllegalAddress),
             contains("kernel that was launched earlier failed") && contains("compute-sanitizer"));
  CHECK_THAT(said(cudaErrorAssert), contains("kernel that was launched earlier"));
  CHECK_THAT(said(cudaErrorDevicesUnavailable), contains("exclusive use") && contains("Xid"));
  CHECK_THAT(said(cudaErrorECCUncorrectable), contains("may be lost") && contains("Xid"));
  CHECK_THAT(said(cudaErrorUnknown), contains("may be lost"));
  CHECK_THAT(said(cudaErrorContextIsDestroyed), contains("was reset"));
  CHECK_THAT(said(cudaErrorStreamCaptureUnsupported), contains("outside of stream capture"));
  CHECK_THAT(said(cudaErrorMemoryAllocation), contains("prefetch(n)") && contains("memory(bytes)"));
  CHECK_THAT(said(cudaErrorInvalidValue), contains("compute-sanitizer"));
}

TEST_CASE("device/cuda_runs: without a driver or a device, opening says so, before anything is allocated") {
  const fresh_fake fake;
  const auto plan = ps::from(numbers(60)) | ps::workers(1) | ps::batch(10) | ps::cuda::pin_and_copy;
  const auto said = [&](cudaError_t code) {
    fake.fake.on_count = code;
    std::string what = message_of([&] { auto run = plan.open(); });
    CHECK(fake.fake.live() == 0);
    CHECK(cudaGetLastError() == cudaSuccess);
    return what;
  };
  CHECK_THAT(said(cudaErrorNoDevice), contains("nvidia-smi") && contains("CUDA_VISIBLE_DEVICES"));
  CHECK_THAT(said(cudaErrorInsufficientDriver), contains("install a driver") && contains("--gpus all"));
  CHECK_THAT(said(cudaErrorInitializationError), contains("forked"));
  CHECK_THAT(said(cudaErrorSystemDriverMismatch), contains("restart"));
}

TEST_CASE("device/cuda_runs: after a kernel failed, whenever it did, there is one error and nothing stays") {
  const fresh_fake fake;
  const auto sweep = [&](const auto& plan) {
    bool went_well = false;
    for (std::uint64_t n = 1; !went_well; ++n) {
      fake.fake.reset();
      fake.fake.fail_with = cudaErrorIllegalAddress;
      fake.fake.stays = true;
      fake.fake.fail_at = n;
      std::vector<int> seen;
      int more = 0;
      const std::string what = message_of([&] {
        auto run = plan.open();
        try {
          for (auto&& b : run) seen.insert(seen.end(), b.begin(), b.end());
        } catch (...) {
          for (auto&& b : run) more += static_cast<int>(b.size());
          throw;
        }
      });
      REQUIRE(fake.fake.live() == 0);
      REQUIRE_FALSE(fake.fake.misused);
      CHECK(more == 0);
      const std::vector<int> all = numbers(60);
      REQUIRE(seen.size() <= all.size());
      CHECK(std::equal(seen.begin(), seen.end(), all.begin()));
      if (what.empty())
        CHECK(seen == all);  // it failed while things were released, which cannot be reported
      else
        CHECK_THAT(what, contains("launched earlier"));
      went_well = fake.fake.stuck == cudaSuccess;
      REQUIRE(n < 1000);
    }
    fake.fake.reset();
    std::vector<int> seen;
    for (auto&& b : plan) seen.insert(seen.end(), b.begin(), b.end());
    CHECK(seen == numbers(60));
  };
  for (const unsigned threads : {0u, 1u}) {
    sweep(ps::from(numbers(60)) | ps::workers(threads) | ps::batch(10) | ps::prefetch(2) |
          ps::pin_and_copy(ps::cuda{.device = 1}));
    sweep(ps::from(numbers(60)) | ps::filter([](int) { return true; }) | ps::workers(threads) |
          ps::batch(10) | ps::pin_and_copy(ps::cuda{.wait = ps::cuda_wait::host}));
  }
}

TEST_CASE("device/cuda_runs: out of device memory is one error, and a run that fits works after it") {
  const fresh_fake fake;
  const auto batches = ps::from(numbers(60)) | ps::workers(1) | ps::batch(10);
  fake.fake.device_bytes = 1024;
  const std::string what = message_of([&] {
    auto run = (batches | ps::prefetch(8) | ps::cuda::pin_and_copy).open();
    std::vector<std::ranges::range_value_t<decltype(run)>> held;
    for (auto&& b : run) held.push_back(std::move(b));
  });
  CHECK_THAT(what, contains("allocating 256 bytes on the device failed with cudaErrorMemoryAllocation") &&
                       contains("prefetch(n)"));
  CHECK(fake.fake.live() == 0);
  int sum = 0;
  for (auto&& b : batches | ps::prefetch(2) | ps::cuda::pin_and_copy)
    for (const int x : b) sum += x;
  CHECK(sum == 1830);
}

TEST_CASE("device/cuda_runs: a launch that fails is told, an error that the program left there is not") {
  const fresh_fake fake;
  const std::vector<int> values = numbers(10);
  const std::vector<ps::bytes_view> columns{std::as_bytes(std::span(values))};
  const std::vector<std::size_t> rooms{100};
  ps::cuda::session session{ps::cuda{}};
  ps::cuda::session::transfer transfer;
  fake.fake.last = cudaErrorInvalidValue;
  session.start(transfer, columns, rooms, [](cudaStream_t) {});
  CHECK(cudaPeekAtLastError() == cudaErrorInvalidValue);
  session.wait(transfer);
  session.reuse(transfer);
  CHECK_THAT(message_of([&] {
               session.start(transfer, columns, rooms,
                             [&fake](cudaStream_t) { fake.fake.last = cudaErrorMemoryAllocation; });
             }),
             contains("launching the kernels of on_device failed with cudaErrorMemoryAllocation"));
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK_THAT(message_of([&] {
               session.start(transfer, columns, rooms,
                             [&fake](cudaStream_t) { fake.fake.last = cudaErrorInvalidValue; });
             }),
             contains("launching the kernels of on_device failed with"));
  CHECK(cudaGetLastError() == cudaSuccess);
}

}  // namespace cuda_runs_test
