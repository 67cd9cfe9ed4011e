// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// nvjpeg and cufile in a .cu file, without names: nvcc compiles both, and plans that use them.

#include <penstock/device/cuda.hpp>
#include <penstock/device/cufile.hpp>
#include <penstock/device/image/nvjpeg.hpp>
#include <penstock/image/crop.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/raw_ranges.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/on_device.hpp>
#include <penstock/stage/pin_and_copy.hpp>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace ps = penstock;

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("compiled, and not run: there is no GPU");
    return 77;
  }
  // files that are no images are black
  const std::vector<std::vector<std::byte>> files(10, std::vector<std::byte>(100));
  std::size_t images = 0;
  for (auto&& b : ps::from(files) | ps::batch(4, ps::ragged) | ps::pin_and_copy(ps::cuda{}) |
                      ps::on_device(ps::nvjpeg(ps::center_crop(32), {.bad_is_black = true})))
    images += b.device_view().shape()[0];

  char folder[] = "/tmp/penstock_test_XXXXXX";
  if (mkdtemp(folder) == nullptr) return 1;
  const std::string path = std::string(folder) + "/rows.raw";
  std::ofstream(path) << std::string(6 * 5000, 'x');
  std::size_t rows = 0;
  {
    const auto ranges = ps::raw_ranges<unsigned char>(path, ps::extents(5000));
    for (auto&& b : ranges | ps::batch(4) | ps::pin_and_copy(ps::cuda{}) | ps::on_device(ps::cufile(ranges)))
      rows += b.device_view().shape()[0];
  }
  std::remove(path.c_str());
  std::remove(folder);
  std::printf("%zu images and %zu rows\n", images, rows);
  return images == 10 && rows == 6 ? 0 : 1;
}
