// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// One expression, over bytes and values in memory and over shards: source, order, read-ahead, decoding,
// batches, device.

#include "made_up_shards.hpp"

#include <penstock/codec/identity.hpp>
#include <penstock/codec/npy.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/shuffle_buffer.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <vector>

using namespace penstock;

template <class Codec>
std::uint64_t count_samples(const auto& source, std::uint64_t rank, std::uint64_t world) {
  auto loader = source | shard(rank, world) | prefetch(64) | decode<Codec> | shuffle_buffer(10'000) |
                batch(256) | pin_and_copy;
  auto run = loader.open();
  std::uint64_t samples = 0;
  for (auto epoch : run.epochs(2))
    for (auto&& b : epoch) samples += b.size();
  return samples;
}

int main() {
  try {
    const auto in_memory = from(std::vector<std::vector<std::byte>>(1000, std::vector<std::byte>(64)));
    const std::uint64_t first = count_samples<identity>(in_memory, 0, 1);
    // Values that need no decoding pass: one expression for every source.
    const auto values = from(std::vector<std::array<float, 16>>(1000));
    const std::uint64_t third = count_samples<identity>(values, 0, 1);
    // A codec takes the one member whose name it declares: here the member that ends in .npy.
    const made_up_shards here("literal", 10, 100);
    const std::uint64_t second = count_samples<npy<std::uint8_t>>(webdataset("train-{0000..0009}.tar"), 1, 4);
    std::printf("%llu samples in memory, %llu of shards\n", static_cast<unsigned long long>(first),
                static_cast<unsigned long long>(second));
    return first == 2000 && second == 500 && third == 2000 ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
