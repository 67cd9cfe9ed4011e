// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A damaged sample among good ones: all batches before it are delivered; then one line says what is wrong,
// and where.

#include <penstock/all.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

namespace ps = penstock;

int main() {
  std::vector<std::byte> shard;
  ps::tar_writer out([&](ps::bytes_view piece) { shard.insert(shard.end(), piece.begin(), piece.end()); });
  for (int i = 0; i < 1000; ++i) {
    auto array = ps::npy_bytes<float>(ps::extents(8), std::vector<float>(8));
    if (i == 700) array.resize(array.size() - 4);  // truncated
    out.write("sample" + std::to_string(i), {{"npy", array}, {"cls", "3"}});
  }
  out.close();

  auto loader = ps::webdataset(ps::memory_files().add("train-0000.tar", shard)) |
                ps::decode<ps::field<"npy", ps::npy<float>>, ps::field<"cls", ps::integer>> | ps::batch(64);
  auto run = loader.open();
  std::uint64_t batches = 0;
  try {
    for (auto&& b : run.epoch(0)) {
      static_cast<void>(b);
      ++batches;
    }
  } catch (const ps::error& e) {
    std::puts(e.what());
    // 64 * 10 <= 700: ten good batches, and a state that resumes at the batch that was not delivered.
    return batches == 10 && run.state().step == 10 && e.code() == ps::errc::format && e.key() == "sample700"
               ? 0
               : 1;
  }
  return 1;
}
