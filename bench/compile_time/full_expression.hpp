// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The program that row 13 compiles, without the headers of the library: the including file chooses them.

#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace ps = penstock;

int main(int argc, char** argv) {
  const auto loader = ps::webdataset(argc > 1 ? argv[1] : "train-{0000..0127}.tar") |
                      ps::shuffle(ps::seed(7), ps::window(16)) | ps::shard(0, 8) | ps::prefetch(64) |
                      ps::fields<"npy", "cls"> |
                      ps::decode<ps::field<"npy", ps::npy<float>>, ps::field<"cls", ps::integer>> |
                      ps::map<"cls">([](std::int64_t c) { return static_cast<std::int32_t>(c); }) |
                      ps::shuffle_buffer(10'000) | ps::batch(256) | ps::pin_and_copy | ps::workers(8);
  auto run = loader.open();
  std::size_t samples = 0;
  for (auto epoch : run.epochs(90))
    for (auto&& b : epoch) samples += ps::get<"npy">(b).shape()[0] + ps::get<"cls">(b).size();
  std::printf("%zu\n", samples);
}
