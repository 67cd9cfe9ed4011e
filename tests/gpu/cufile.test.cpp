// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// cufile with the real library. Without a GPU it is only compiled and linked, and says so.

#include <penstock/device/cufile.hpp>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"

#include <penstock/codec/npy.hpp>
#include <penstock/device/cuda.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/npy_ranges.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/on_device.hpp>
#include <penstock/stage/pin_and_copy.hpp>

#include <cstddef>
#include <fstream>
#include <numeric>
#include <span>
#include <string>
#include <vector>

namespace gpu_cufile_test {

namespace ps = penstock;
using penstock_test::contains;

/// Whether there is a GPU; a machine without one is not a failure, not even in CI.
bool have_gpu() {
  int devices = 0;
  const cudaError_t code = cudaGetDeviceCount(&devices);
  if (code == cudaSuccess && devices > 0) return true;
  static_cast<void>(cudaGetLastError());
  WARN("not run: there is no GPU (" << cudaGetErrorName(code) << ")");
  return false;
}

/// 60 rows of 3 x 1000 numbers, which count.
std::string rows_in(const penstock_test::temp_dir& folder) {
  std::vector<float> values(60 * 3000);
  std::iota(values.begin(), values.end(), 0.0f);
  const auto bytes = ps::npy_bytes<float>(ps::extents(60, 3, 1000), std::span<const float>(values));
  const auto path = folder / "rows.npy";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return path.string();
}

TEST_CASE("gpu/cufile: rows arrive, directly or through the host") {
  if (!have_gpu()) return;
  const penstock_test::temp_dir folder;
  const auto rows = ps::npy_ranges<float>(rows_in(folder));
  for (const bool direct : {true, false}) {
    const auto read = ps::cufile(rows, {.direct = direct});
    std::vector<float> found;
    for (auto&& b : rows | ps::batch(16) | ps::pin_and_copy(ps::cuda{.wait = ps::cuda_wait::host}) |
                        ps::on_device(read)) {
      const auto made = b.device_view();
      const std::size_t before = found.size();
      found.resize(before + made.size());
      REQUIRE(cudaMemcpy(found.data() + before, made.data(), made.size() * sizeof(float),
                         cudaMemcpyDeviceToHost) == cudaSuccess);
    }
    INFO(read.describe());
    REQUIRE(found.size() == 60 * 3000);
    for (std::size_t i = 0; i < found.size(); ++i) REQUIRE(found[i] == static_cast<float>(i));
    CHECK(read.counts().direct + read.counts().host == 60);
  }
}

TEST_CASE("gpu/cufile: the library says whether it can read directly") {
  const penstock_test::temp_dir folder;
  const auto rows = ps::npy_ranges<float>(rows_in(folder));
  const std::string said = ps::cufile(rows, {.threads = 3}).describe();
  INFO(said);
  CHECK_THAT(said, contains("cufile: 3 threads read to the device directly") ||
                       contains("cufile: 3 threads read through the host's memory: "));
}

}  // namespace gpu_cufile_test
