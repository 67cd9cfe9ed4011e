// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The logic of cufile, with a fake cuFile and a fake CUDA that need no GPU.

#include <penstock/device/cufile.hpp>

#include "support/catch.hpp"
#include "support/fake_cuda.hpp"
#include "support/fake_cufile.hpp"
#include "support/temp_dir.hpp"

#include <penstock/codec/npy.hpp>
#include <penstock/core/error.hpp>
#include <penstock/device/cuda.hpp>
#include <penstock/inspection/describe.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/npy_ranges.hpp>
#include <penstock/source/npy_rows.hpp>
#include <penstock/source/raw_ranges.hpp>
#include <penstock/source/zip.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/on_device.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace cufile_test {

namespace ps = penstock;
using penstock_test::contains;
using penstock_test::fake_cuda;
using penstock_test::fake_cufile;

/// Fresh fakes; the destructor checks that everything was released exactly once.
struct fresh_fakes {
  fake_cuda& cuda = fake_cuda::get();
  fake_cufile& cufile = fake_cufile::get();
  fresh_fakes() {
    cuda.reset();
    cufile.reset();
  }
  ~fresh_fakes() {
    CHECK(cuda.live() == 0);
    CHECK(cufile.live() == 0);
    CHECK(!cuda.misused);
    CHECK(!cufile.misused);
    cuda.reset();
    cufile.reset();
  }
};

void write(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

/// In place of the kernel's list of modules, which not every machine has.
constexpr const char* readable = "/proc/self/stat";

/// npy files of rows of 7 x 90 floats, 2520 bytes each, none of which begins with a block of the disk.
struct dataset {
  penstock_test::temp_dir folder;
  std::string pattern = (folder / "part-{0..2}.npy").string();
  static constexpr std::size_t rows[] = {5, 1, 11}, total = 17;

  dataset() {
    float next = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      std::vector<float> values(rows[i] * 630);
      for (float& value : values) value = next++;
      const auto bytes = ps::npy_bytes<float>(ps::extents(rows[i], std::size_t{7}, std::size_t{90}),
                                              std::span<const float>(values));
      write(path(i), std::as_bytes(std::span(bytes)));
    }
  }
  [[nodiscard]] std::filesystem::path path(std::size_t i) const {
    return folder / ("part-" + std::to_string(i) + ".npy");
  }
  /// Whether the file system can be read past the cache; some temporary folders are in memory.
  [[nodiscard]] bool direct() const {
    const int opened = open(path(0).c_str(), O_RDONLY | O_DIRECT);
    if (opened < 0) {
      WARN("not tested: the file system has no direct reads");
      return false;
    }
    close(opened);
    return true;
  }
};

/// What kernels on the device's stream see of two epochs.
template <class Plan>
std::vector<float> seen_by_kernels(const Plan& plan, cudaStream_t stream) {
  std::vector<float> seen;
  auto run = plan.open();
  for (auto epoch : run.epochs(2)) {
    for (auto&& b : epoch) {
      const auto made = b.device_view();
      REQUIRE(made.shape() == ps::extents(b.size(), std::size_t{7}, std::size_t{90}));
      fake_cuda::get().launch(
          stream, [&seen, made] { seen.insert(seen.end(), made.data(), made.data() + made.size()); });
    }
  }
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  return seen;
}
template <class Plan>
std::vector<float> seen_on_host(const Plan& plan) {
  std::vector<float> seen;
  auto run = plan.open();
  for (auto epoch : run.epochs(2))
    for (auto&& b : epoch) seen.insert(seen.end(), b.values().data(), b.values().data() + b.size() * 630);
  return seen;
}

/// The header's example; there are no such files here.
auto example() {
  const auto rows = ps::npy_ranges<float>("features-{00..07}.npy");
  const auto loader = rows | ps::shuffle(ps::seed(7)) | ps::batch(256) | ps::pin_and_copy(ps::cuda{}) |
                      ps::on_device(ps::cufile(rows));
  return loader;
}
static_assert(ps::elastic<decltype(example())>);

// A column that nobody has located.
template <class View>
using wrong_for = typename ps::detail::device_check<
    View, ps::light_tuple<decltype(ps::cufile(ps::npy_ranges<float>("a.npy")))>>::wrong;
static_assert(std::is_same_v<wrong_for<ps::tensor_view<float>>, ps::mistakes::cufile_wants_ranges>);
static_assert(std::is_same_v<wrong_for<std::span<ps::file_range>>, ps::mistakes::none>);

TEST_CASE("device/cufile: rows of npy files are on the device what npy_rows has on the host") {
  const fresh_fakes fakes;
  const dataset data;
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  const auto rows = ps::npy_ranges<float>(data.pattern);
  const auto expected =
      seen_on_host(ps::npy_rows<float>(data.pattern) | ps::shuffle(ps::seed(3)) | ps::batch(4));
  const bool direct = data.direct();
  for (const unsigned threads : {0u, 2u}) {
    for (const int way : {0, 1, 2, 3, 4}) {
      fakes.cufile.reset();
      fakes.cufile.has_driver = way != 1;
      fakes.cufile.direct = way != 2;
      fakes.cufile.understands_files = way != 3;
      fakes.cufile.longest = way == 4 ? 1000 : ~std::size_t{0};  // reads in pieces
      const auto read = ps::cufile(rows, {.threads = threads + 1, .modules = readable});
      const auto plan = rows | ps::shuffle(ps::seed(3)) | ps::workers(threads) | ps::batch(4) |
                        ps::prefetch(3) | ps::pin_and_copy(ps::cuda{.stream = stream}) | ps::on_device(read);
      CHECK(seen_by_kernels(plan, stream) == expected);
      const ps::cufile_counts counts = read.counts();
      CHECK(counts.direct + counts.host == 2 * dataset::total);
      if (direct) CHECK(counts.direct == (way == 0 || way == 4 ? 2 * dataset::total : 0));
    }
  }
  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
}

TEST_CASE("device/cufile: describe says which way rows are read, and why") {
  const fresh_fakes fakes;
  const dataset data;
  const auto rows = ps::npy_ranges<float>(data.pattern);
  CHECK(ps::cufile(rows, {.threads = 2, .modules = readable}).describe() ==
        "cufile: 2 threads read to the device directly");
  CHECK(ps::cufile(rows, {.threads = 2, .direct = false}).describe() ==
        "cufile: 2 threads read through the host's memory, as they were told");
  CHECK_THAT(ps::describe(rows | ps::batch(4) | ps::pin_and_copy(ps::cuda{}) |
                          ps::on_device(ps::cufile(rows, {.threads = 2, .modules = readable}))),
             contains("on_device, cufile: 2 threads read to the device directly"));
  fakes.cufile.direct = false;
  const auto indirect = ps::cufile(rows, {.threads = 2, .modules = readable});
  CHECK_THAT(indirect.describe(),
             contains("through the host's memory: there is neither the nvidia-fs driver"));
  fakes.cufile.direct = true;
  CHECK_THAT(indirect.describe(), contains("through the host's memory"));  // it was asked once
  fakes.cufile.has_driver = false;
  CHECK_THAT(ps::cufile(rows, {.modules = readable}).describe(),
             contains("nvidia-fs driver is not loaded") && contains("cuFile 5001"));
  CHECK(fakes.cufile.opens == 0);
  // where asking the library would not end, or is of no use
  const std::uint64_t asked = fakes.cuda.count["cuFileDriverOpen"];
  CHECK_THAT(ps::cufile(rows, {.modules = "/no such list"}).describe(),
             contains("through the host's memory: the kernel has no /no such list"));
  fakes.cuda.on_count = cudaErrorNoDevice;
  CHECK_THAT(ps::cufile(rows, {.modules = readable}).describe(),
             contains("through the host's memory: there is no CUDA device"));
  CHECK(fakes.cuda.count["cuFileDriverOpen"] == asked);
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("device/cufile: raw files, beside a column of the host, and slots without a sample") {
  const fresh_fakes fakes;
  const penstock_test::temp_dir folder;
  std::vector<std::uint8_t> pixels(5 * 12);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i + 1);
  for (std::size_t i = 0; i < 5; ++i)  // each file one sample
    write(folder / (std::to_string(i) + ".raw"), std::as_bytes(std::span(pixels)).subspan(i * 12, 12));
  const std::vector<std::int32_t> labels{10, 11, 12, 13, 14};
  const auto bytes = ps::npy_bytes<std::int32_t>(ps::extents(5), std::span<const std::int32_t>(labels));
  write(folder / "labels.npy", std::as_bytes(std::span(bytes)));

  const auto images = ps::raw_ranges<std::uint8_t>((folder / "{0..4}.raw").string(), ps::extents(2, 2, 3));
  const auto plan =
      ps::zip<"image", "label">(images, ps::npy_rows<std::int32_t>((folder / "labels.npy").string())) |
      ps::batch(4, ps::tail::pad) | ps::pin_and_copy(ps::cuda{.wait = ps::cuda_wait::host}) |
      ps::on_device<"image">(ps::cufile(images, {.modules = readable}));
  std::vector<std::uint8_t> seen;
  for (auto&& b : plan) {
    const auto made = ps::device_view<"image">(b);
    CHECK(made.shape() == ps::extents(4, 2, 2, 3));
    seen.insert(seen.end(), made.data(), made.data() + made.size());
    CHECK(ps::get<"image">(b)[0].bytes == 12);  // the host's side stays
  }
  pixels.resize(8 * 12);
  CHECK(seen == pixels);
}

TEST_CASE("device/cufile: many files do not stay open") {
  const fresh_fakes fakes;
  const penstock_test::temp_dir folder;
  constexpr std::size_t files = 300;
  for (std::size_t i = 0; i < files; ++i) {
    const std::vector<std::uint16_t> values(10, static_cast<std::uint16_t>(i));
    write(folder / (std::to_string(i) + ".raw"), std::as_bytes(std::span(values)));
  }
  const auto rows = ps::raw_ranges<std::uint16_t>((folder / "{0..299}.raw").string(), ps::extents(10));
  const auto open_files = [] {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
    return count;
  };
  const std::size_t before = open_files();
  for (const bool direct : {false, true}) {
    std::size_t seen = 0;
    auto run = (rows | ps::batch(100) | ps::pin_and_copy(ps::cuda{.wait = ps::cuda_wait::host}) |
                ps::on_device(ps::cufile(rows, {.direct = direct, .modules = readable})))
                   .open();
    for (auto&& b : run) {
      const auto made = b.device_view();
      for (std::size_t i = 0; i < b.size(); ++i) CHECK(made.data()[i * 10 + 9] == seen++);
      CHECK(open_files() < before + 50);
    }
    CHECK(seen == files);
  }
}

TEST_CASE("device/cufile: nothing is allocated or registered in the steady state") {
  const fresh_fakes fakes;
  const dataset data;
  const auto rows = ps::npy_ranges<float>(data.pattern);
  const auto plan = rows | ps::workers(0) | ps::batch(17) | ps::pin_and_copy(ps::cuda{}) |
                    ps::on_device(ps::cufile(rows, {.threads = 1, .modules = readable}));
  auto run = plan.open();
  const auto made = [&] {
    std::uint64_t sum = 0;
    for (const auto& [name, times] : fakes.cuda.count)
      if (name.find("Create") != std::string::npos || name.find("lloc") != std::string::npos ||
          name.find("Register") != std::string::npos)
        sum += times;
    return sum;
  };
  std::uint64_t before = 0;
  for (auto epoch : run.epochs(6))
    for (auto&& b : epoch) {
      CHECK(b.size() == 17);
      if (epoch.number() == 3) before = made();
    }
  CHECK(before != 0);
  CHECK(made() == before);
  if (data.direct()) CHECK(fakes.cuda.count["cuFileHandleRegister"] == 3);
}

template <class Plan>
std::string failure_of(const Plan& plan) {
  try {
    for (auto&& b : plan) CHECK(b.size() != 0);
  } catch (const ps::error& e) {
    CHECK(e.code() == ps::errc::io);
    return e.what();
  }
  return "";
}

TEST_CASE("device/cufile: errors name the file and the offset") {
  const fresh_fakes fakes;
  for (const bool direct : {false, true}) {
    const dataset data;
    if (direct && !data.direct()) continue;
    const auto rows = ps::npy_ranges<float>(data.pattern);
    const auto plan = rows | ps::workers(0) | ps::batch(4) | ps::pin_and_copy(ps::cuda{}) |
                      ps::on_device(ps::cufile(rows, {.threads = 1, .direct = direct, .modules = readable}));
    CHECK(failure_of(plan).empty());
    if (direct) {
      // a read that fails for the system
      fakes.cufile.next_read = -1;
      fakes.cufile.next_errno = EIO;
      CHECK_THAT(failure_of(plan), contains("cannot read: Input/output error") && contains("part-0.npy") &&
                                       contains("offset 128"));
      // and one that is interrupted
      fakes.cufile.next_read = -1;
      fakes.cufile.next_errno = EINTR;
      CHECK(failure_of(plan).empty());
      // one that fails for the library is the host's
      fakes.cufile.next_read = -CU_FILE_IO_NOT_SUPPORTED;
      CHECK(failure_of(plan).empty());
      // one that ends too early
      fakes.cufile.next_read = 0;
      CHECK_THAT(failure_of(plan), contains("it was cut meanwhile") && contains("part-0.npy"));
    }
    // cut while a run works
    {
      auto run = plan.open();
      std::string what;
      int batches = 0;
      try {
        for (auto&& b : run) {
          CHECK(b.size() == 4);
          if (batches++ == 1) std::filesystem::resize_file(data.path(2), 128 + 5 * 2520 + 7);
        }
      } catch (const ps::error& e) {
        what = e.what();
      }
      CHECK(batches >= 2);
      CHECK_THAT(what, contains("it was cut meanwhile") && contains("part-2.npy") &&
                           contains("offset 12735") && contains("the file ends at 12735"));
    }
    // cut after the plan was made
    CHECK_THAT(failure_of(plan), contains("was changed after the plan was made") && contains("part-2.npy"));
    std::filesystem::remove(data.path(0));
    CHECK_THAT(failure_of(plan), contains("cannot open") && contains("part-0.npy"));
  }
}

TEST_CASE("device/cufile: ranges of another source are refused") {
  const fresh_fakes fakes;
  const dataset data;
  const auto rows = ps::npy_ranges<float>(data.pattern);
  const auto other = ps::raw_ranges<float>(data.path(1).string(), ps::extents(2, 331));  // 2648 bytes
  const auto plan = rows | ps::batch(4) | ps::pin_and_copy(ps::cuda{}) |
                    ps::on_device(ps::cufile(other, {.modules = readable}));
  CHECK_THROWS_WITH(
      [&] {
        for (auto&& b : plan) CHECK(b.size() == 0);
      }(),
      contains("give cufile the source that the ranges are from"));
}

TEST_CASE("device/cufile: whichever call fails, there is one error or none, and nothing is left behind") {
  const fresh_fakes fakes;
  const dataset data;
  const auto rows = ps::npy_ranges<float>(data.pattern);
  const auto expected = seen_on_host(ps::npy_rows<float>(data.pattern) | ps::batch(6));
  for (const int way : {0, 1, 2, 3}) {
    const bool direct = way % 2 == 1, stays = way > 1;  // after one failure, every call fails
    std::uint64_t failed = 0, mended = 0;
    for (std::uint64_t n = 1;; ++n) {
      fakes.cuda.stays = stays;
      const auto plan =
          rows | ps::workers(0) | ps::batch(6) |
          ps::pin_and_copy(ps::cuda{.device = 1, .wait = ps::cuda_wait::host}) |
          ps::on_device(ps::cufile(rows, {.threads = 1, .direct = direct, .modules = readable}));
      fakes.cuda.calls = 0;
      fakes.cuda.fail_at = n;
      std::vector<float> seen;
      std::string what;
      try {
        for (auto&& b : plan) {
          const auto made = b.device_view();
          seen.insert(seen.end(), made.data(), made.data() + made.size());
        }
      } catch (const ps::error& e) {
        what = e.what();
        CHECK(e.code() == ps::errc::io);
      }
      fakes.cuda.stays = false;
      const bool lost = std::exchange(fakes.cuda.stuck, cudaSuccess) != cudaSuccess;
      REQUIRE(fakes.cuda.live() == 0);
      REQUIRE(fakes.cufile.live() == 0);
      if (stays) fake_cuda::current() = 0;  // nobody could restore it
      REQUIRE(fake_cuda::current() == 0);
      REQUIRE(std::equal(seen.begin(), seen.end(), expected.begin()));
      if (what.empty()) {
        CHECK(seen.size() * 2 == expected.size());
        if (fakes.cuda.calls < n) break;
        ++mended;
        continue;
      }
      CHECK_THAT(what, contains("failed with cudaErrorLaunchFailure"));
      if (!lost) CHECK(fakes.cuda.last == cudaSuccess);
      fakes.cuda.last = cudaSuccess;
      ++failed;
    }
    CHECK(failed > 60);
    if (direct && !stays) CHECK(mended > 10);  // the library's failures, of which the host makes up for all
  }
}

}  // namespace cufile_test
