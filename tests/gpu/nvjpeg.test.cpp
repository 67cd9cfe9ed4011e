// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// nvjpeg with the real library. Without a GPU it is only compiled and linked, and says so.

#include <penstock/device/image/nvjpeg.hpp>

#include "support/catch.hpp"
#include "support/plain_jpeg.hpp"

#include <penstock/codec/jpeg.hpp>
#include <penstock/device/cuda.hpp>
#include <penstock/image/crop.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/on_device.hpp>
#include <penstock/stage/pin_and_copy.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace gpu_nvjpeg_test {

namespace ps = penstock;

/// Whether there is a GPU; a machine without one is not a failure, not even in CI.
bool have_gpu() {
  int devices = 0;
  const cudaError_t code = cudaGetDeviceCount(&devices);
  if (code == cudaSuccess && devices > 0) return true;
  static_cast<void>(cudaGetLastError());
  WARN("not run: there is no GPU (" << cudaGetErrorName(code) << ")");
  return false;
}

TEST_CASE("gpu/nvjpeg: images are near to those of the host's codec, whoever decodes them") {
  if (!have_gpu()) return;
  std::vector<std::vector<std::byte>> files;
  for (std::uint32_t i = 0; i < 64; ++i)
    files.push_back(plain_jpeg::encode({200 + i, 300 - i},
                                       {.factors = {{2, 2}, {1, 1}, {1, 1}}, .progressive = i % 4 == 1}));
  files[5] = plain_jpeg::encode({200, 200}, {.factors = {{1, 1}}});
  files[6] = plain_jpeg::encode({20, 20}, {.factors = {{1, 1}, {1, 1}, {1, 1}}});
  std::vector<std::uint8_t> expected;
  for (auto&& b : ps::from(files) | ps::decode<ps::jpeg> | ps::map(ps::center_crop(128)) | ps::batch(32)) {
    const auto images = b.values();
    expected.insert(expected.end(), images.data(), images.data() + images.shape().elements());
  }
  for (const bool engine : {false, true}) {
    const auto pixels = ps::nvjpeg(ps::center_crop(128), {.engine = engine});
    std::vector<std::uint8_t> found;
    for (auto&& b : ps::from(files) | ps::batch(32, ps::ragged) |
                        ps::pin_and_copy(ps::cuda{.wait = ps::cuda_wait::host}) | ps::on_device(pixels)) {
      const auto made = b.device_view();
      const std::size_t before = found.size();
      found.resize(before + made.size());
      REQUIRE(cudaMemcpy(found.data() + before, made.data(), made.size(), cudaMemcpyDeviceToHost) ==
              cudaSuccess);
    }
    REQUIRE(found.size() == expected.size());
    double sum = 0;
    for (std::size_t i = 0; i < found.size(); ++i) sum += std::abs(int{found[i]} - int{expected[i]});
    const ps::nvjpeg_counts counts = pixels.counts();
    INFO(pixels.describe() << "; " << counts.engine << " by the engine, " << counts.device
                           << " by the device, " << counts.host << " by the host");
    CHECK(sum / static_cast<double>(found.size()) < 3);
    CHECK(counts.engine + counts.device + counts.host == 64);
    CHECK(counts.host < 32);
  }
}

TEST_CASE("gpu/nvjpeg: a device that cannot be opened is a penstock error") {
  std::string what;
  try {
    (void)ps::nvjpeg(ps::center_crop(8)).connect(10'000);
  } catch (const ps::error& e) {
    what = e.what();
  }
  INFO(what);
  CHECK(what.find("choosing the CUDA device failed with cudaError") != std::string::npos);
}

}  // namespace gpu_nvjpeg_test
