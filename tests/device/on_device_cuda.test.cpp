// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Operations on the device behind the copies of device/cuda.hpp, with a fake runtime that needs no GPU.

#include <penstock/device/cuda.hpp>

#include "support/catch.hpp"
#include "support/fake_cuda.hpp"
#include "support/test_image.hpp"

#include <penstock/device/image/operations.hpp>
#include <penstock/integration/to_dlpack.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/on_device.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ps = penstock;
using penstock_test::contains;
using penstock_test::fake_cuda;

static_assert(ps::computing_session<ps::cuda::session>, "a GPU can be given work");

/// The kernels of a device: the code of their threads, when the stream gets there.
void penstock::launch_image_work(const image_work& work, CUstream_st* stream) {
  fake_cuda::get().launch(stream, [work] { run_image_work(work); });
}

namespace device_on_device_cuda_test {

namespace {

/// A fresh fake; its destructor checks that everything was released exactly once.
struct fresh_fake {
  fake_cuda& fake = fake_cuda::get();
  fresh_fake() { fake.reset(); }
  ~fresh_fake() {
    CHECK(fake.live() == 0);
    CHECK(!fake.misused);
    fake.reset();
  }
};

std::vector<std::uint8_t> numbers(int n) {
  std::vector<std::uint8_t> all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), std::uint8_t{1});
  return all;
}

/// Twice each number, as float, plus what its table says of its slot.
struct twice {
  template <class View>
  using output = float;
  template <class View>
  ps::extents shape(const View& view, const ps::device_batch&) const {
    return ps::extents(view.size());
  }
  template <class View>
  std::size_t table_bytes(const View&, const ps::device_batch& batch) const {
    return batch.slots() * sizeof(float);
  }
  template <class View>
  void fill_table(const View&, const ps::device_batch& batch, std::span<std::byte> table) const {
    for (std::size_t i = 0; i < batch.slots(); ++i) {
      const float more = batch.holds(i) ? 0.5f : 0.0f;
      std::memcpy(table.data() + i * sizeof more, &more, sizeof more);
    }
  }
  template <class View>
  void launch(cudaStream_t stream, const View& view, const ps::device_batch&,
              const ps::device_places& places) const {
    fake_cuda::get().launch(stream, [places, count = view.size()] {
      for (std::size_t i = 0; i < count; ++i) {
        float more = 0;
        std::memcpy(&more, places.table + i * sizeof more, sizeof more);
        typename View::value_type in{};
        std::memcpy(&in, places.input + i * sizeof in, sizeof in);
        const float out = static_cast<float>(in) * 2 + more;
        std::memcpy(places.output + i * sizeof out, &out, sizeof out);
      }
    });
  }
};

std::vector<float> expected_of(const std::vector<std::uint8_t>& values) {
  std::vector<float> all;
  for (const std::uint8_t x : values) all.push_back(static_cast<float>(x) * 2 + 0.5f);
  return all;
}

/// What kernels on a stream see of what the operations made, if each batch is dropped as soon as they are
/// launched.
template <class Plan>
std::vector<float> seen_by_kernels(const Plan& plan, cudaStream_t stream) {
  std::vector<float> seen;
  auto run = plan.open();
  for (auto&& b : run) {
    const auto view = b.device_view();
    fake_cuda::get().launch(stream, [&seen, view] {
      for (std::size_t i = 0; i < view.size(); ++i) seen.push_back(view.data()[i]);
    });
  }
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  return seen;
}

}  // namespace

TEST_CASE("device/on_device_cuda: kernels see what the operation made, however late they run") {
  const fresh_fake fresh;
  const std::vector<std::uint8_t> all = numbers(200);
  cudaStream_t training = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&training, cudaStreamNonBlocking) == cudaSuccess);
  for (const unsigned threads : {0u, 2u}) {
    for (const std::uint64_t depth : {1u, 3u}) {
      const auto batches = ps::from(all) | ps::workers(threads) | ps::batch(7) | ps::prefetch(depth);
      CHECK(seen_by_kernels(batches | ps::pin_and_copy(ps::cuda{.stream = training}) | ps::on_device(twice{}),
                            training) == expected_of(all));
      CHECK(seen_by_kernels(
                batches | ps::pin_and_copy(ps::cuda{.wait = ps::cuda_wait::host}) | ps::on_device(twice{}),
                nullptr) == expected_of(all));
    }
    const auto gathered = ps::from(all) | ps::filter([](std::uint8_t x) { return x <= 100; }) |
                          ps::workers(threads) | ps::batch(7) |
                          ps::pin_and_copy(ps::cuda{.stream = training}) | ps::on_device(twice{});
    CHECK(seen_by_kernels(gathered, training) == expected_of(numbers(100)));
  }
  CHECK(cudaStreamDestroy(training) == cudaSuccess);
}

TEST_CASE("device/on_device_cuda: a batch is one copy more, and no wait of the host") {
  const fresh_fake fresh;
  auto run = (ps::from(numbers(40)) | ps::workers(0) | ps::batch(10) | ps::pin_and_copy(ps::cuda{}) |
              ps::on_device(twice{}, twice{}))
                 .open();
  std::size_t batches = 0;
  for (auto&& b : run) batches += b.size() / 10;
  CHECK(batches == 4);
  CHECK(fresh.fake.count["cudaMemcpyAsync"] == 2 * batches);  // the column, and one table of both operations
  CHECK(fresh.fake.count["cudaStreamSynchronize"] == 0);
}

TEST_CASE("device/on_device_cuda: nothing is allocated once every batch in flight has been used") {
  const fresh_fake fresh;
  auto run = (ps::from(numbers(64)) | ps::workers(0) | ps::batch(8) | ps::prefetch(3) |
              ps::pin_and_copy(ps::cuda{}) | ps::on_device(twice{}))
                 .open();
  const auto all_made = [&] {
    return fresh.fake.count["cudaMalloc"] + fresh.fake.count["cudaHostAlloc"] +
           fresh.fake.count["cudaEventCreateWithFlags"];
  };
  std::uint64_t made = 0;
  for (auto epoch : run.epochs(4)) {
    for (auto&& b : epoch) CHECK(b.device_view().data() != nullptr);
    if (made == 0) made = all_made();
  }
  CHECK(all_made() == made);
}

TEST_CASE("device/on_device_cuda: DLPack gives the result on its device") {
  const fresh_fake fresh;
  auto run = (ps::from(numbers(8)) | ps::batch(8) |
              ps::pin_and_copy(ps::cuda{.device = 1, .wait = ps::cuda_wait::host}) | ps::on_device(twice{}))
                 .open();
  auto b = run.next();
  const ps::dlpack_tensor there = ps::to_dlpack(*b), here = ps::to_dlpack_host(*b);
  CHECK(there->device == ps::dlpack::device{ps::dlpack::device_type::cuda, 1});
  CHECK(there->dtype == ps::dlpack::data_type_of<float>);
  CHECK(there->shape[0] == 8);
  CHECK(static_cast<const float*>(there->data)[7] == 16.5f);
  CHECK(here->dtype == ps::dlpack::data_type_of<std::uint8_t>);
  CHECK(here->device == ps::dlpack::device{ps::dlpack::device_type::cuda_host, 0});
}

TEST_CASE("device/on_device_cuda: images are what a map before batch makes of them") {
  const fresh_fake fresh;
  using image = penstock_test::test_image<std::uint8_t, 3>;
  const auto source = ps::generated(23, [](std::uint64_t i) { return image({20, 12}, i); });
  const auto to_device = ps::batch(5, ps::tail::pad) | ps::prefetch(3) | ps::pin_and_copy(ps::cuda{});
  const auto bits_of = [](const auto& plan) {
    std::vector<std::uint16_t> all;
    auto run = plan.open();
    for (auto&& b : run) {
      const auto view = b.device_view();
      CHECK(view.shape() == ps::extents(5, 3, 9, 16));
      fake_cuda::get().launch(nullptr, [&all, view] {
        for (std::size_t i = 0; i < view.size(); ++i) all.push_back(view.data()[i].bits());
      });
    }
    REQUIRE(cudaStreamSynchronize(nullptr) == cudaSuccess);
    return all;
  };
  for (const unsigned threads : {0u, 2u}) {
    const auto images = source | ps::workers(threads);
    const auto host = bits_of(images |
                              ps::map(ps::random_crop(9, 16), ps::horizontal_flip(),
                                      ps::normalize(ps::imagenet), ps::to_half(), ps::to_chw()) |
                              to_device);
    CHECK(host.size() == 25 * 3 * 9 * 16);
    CHECK(bits_of(images | to_device |
                  ps::on_device(ps::random_crop(9, 16), ps::horizontal_flip(), ps::normalize(ps::imagenet),
                                ps::to_chw(), ps::to_half())) == host);
  }
}

namespace {

/// In the place of a function of a .cu file that launches a kernel.
void launch_scale(const std::byte* from, std::byte* to, std::size_t count, float factor,
                  cudaStream_t stream) {
  fake_cuda::get().launch(stream, [=] {
    for (std::size_t i = 0; i < count; ++i) {
      const float out = static_cast<float>(from[i]) * factor;
      std::memcpy(to + i * sizeof out, &out, sizeof out);
    }
  });
}

struct scaled {
  float factor;
  template <class View>
  using output = float;
  template <class View>
  ps::extents shape(const View& column, const ps::device_batch&) const {
    return column.shape();
  }
  template <class View>
  void launch(cudaStream_t stream, const View& column, const ps::device_batch&,
              const ps::device_places& at) const {
    launch_scale(at.input, at.output, column.size(), factor, stream);
  }
};

}  // namespace

TEST_CASE("device/on_device_cuda: the examples of the documentation") {
  const fresh_fake fresh;
  using image = penstock_test::test_image<std::uint8_t, 3>;
  using sample = ps::record<ps::field<"jpg", image>, ps::field<"cls", int>>;
  const auto photos = ps::generated(32, [](std::uint64_t i) { return sample(image({8, 8}, i), 1); });
  auto loader =
      photos | ps::batch(16) | ps::pin_and_copy(ps::cuda{.wait = ps::cuda_wait::host}) |
      ps::on_device<"jpg">(ps::horizontal_flip(), ps::normalize(ps::imagenet), ps::to_chw(), ps::to_half());
  for (auto&& b : loader.epoch(0)) {
    const auto images = ps::device_view<"jpg">(b);  // half, (16, 3, 8, 8)
    CHECK(images.shape() == ps::extents(16, 3, 8, 8));
    CHECK(ps::get<"jpg">(b).shape() == ps::extents(16, 8, 8, 3));  // the host's side
  }
  for (auto&& b : photos | ps::batch(16) | ps::pin_and_copy(ps::cuda{.wait = ps::cuda_wait::host}) |
                      ps::on_device<"jpg">(scaled{2})) {
    const auto numbers = ps::device_view<"jpg">(b);
    CHECK(numbers.shape() == ps::extents(16, 8, 8, 3));
    CHECK(numbers.data()[5] == 2.0f * static_cast<float>(ps::get<"jpg">(b).data()[5]));
  }
}

namespace {

/// Puts something on the stream, then throws, for the batch that begins with a value.
struct failing : twice {
  int at = 0;
  template <class View>
  void launch(cudaStream_t stream, const View& view, const ps::device_batch& batch,
              const ps::device_places& places) const {
    twice::launch(stream, view, batch, places);
    if (view.data()[0] == at) throw ps::error(ps::errc::io, "the kernel did not start");
  }
};

struct refused : twice {
  template <class View>
  void launch(cudaStream_t, const View&, const ps::device_batch&, const ps::device_places&) const {
    fake_cuda::get().last = cudaErrorLaunchFailure;  // as a launch leaves it
  }
};

}  // namespace

TEST_CASE("device/on_device_cuda: an operation that throws leaves nothing in flight") {
  for (const unsigned threads : {0u, 1u}) {
    const fresh_fake fresh;
    auto run = (ps::from(numbers(60)) | ps::workers(threads) | ps::batch(10) | ps::prefetch(2) |
                ps::pin_and_copy(ps::cuda{}) | ps::on_device(failing{{}, 31}))
                   .open();
    std::size_t seen = 0;
    std::string what;
    try {
      for (auto&& b : run) seen += b.size();
    } catch (const ps::error& e) {
      what = e.what();
    }
    CHECK_THAT(what, contains("the kernel did not start"));
    CHECK(seen <= 30);
    CHECK_FALSE(run.next());
  }
}

TEST_CASE("device/on_device_cuda: a kernel that cannot be launched is an error that says so") {
  const fresh_fake fresh;
  std::string what;
  try {
    for (auto&& b :
         ps::from(numbers(4)) | ps::batch(2) | ps::pin_and_copy(ps::cuda{}) | ps::on_device(refused{}))
      (void)b;
  } catch (const ps::error& e) {
    what = e.what();
  }
  CHECK_THAT(what, contains("launching the kernels of on_device failed with cudaErrorLaunchFailure"));
}

TEST_CASE("device/on_device_cuda: whichever call fails, there is one error and nothing is left behind") {
  const fresh_fake fresh;
  const auto plan = ps::from(numbers(60)) | ps::workers(0) | ps::batch(10) | ps::prefetch(2) |
                    ps::pin_and_copy(ps::cuda{.device = 1}) | ps::on_device(twice{}, twice{});
  std::uint64_t failed = 0;
  for (std::uint64_t n = 1;; ++n) {
    fresh.fake.calls = 0;
    fresh.fake.fail_at = n;
    std::size_t seen = 0;
    std::string what;
    try {
      auto run = plan.open();
      for (auto&& b : run) seen += b.size();
    } catch (const ps::error& e) {
      what = e.what();
      CHECK(e.code() == ps::errc::io);
    }
    REQUIRE(fresh.fake.live() == 0);
    REQUIRE(fake_cuda::current() == 0);
    if (what.empty()) {
      if (fresh.fake.calls < n) {
        CHECK(seen == 60);
        break;
      }
      continue;  // failed while releasing, which cannot be reported
    }
    CHECK_THAT(what, contains("failed with cudaErrorLaunchFailure"));
    ++failed;
  }
  CHECK(failed > 40);
}

}  // namespace device_on_device_cuda_test
