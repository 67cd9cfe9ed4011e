// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Two damaged samples among a thousand: one run leaves holes for them, another replaces them, and a ledger
// names them.

#include <penstock/all.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

namespace ps = penstock;

int main() {
  std::vector<std::byte> shard;
  ps::tar_writer out([&](ps::bytes_view piece) { shard.insert(shard.end(), piece.begin(), piece.end()); });
  for (int i = 0; i < 1000; ++i) {
    auto array = ps::npy_bytes<float>(ps::extents(8), std::vector<float>(8, 1.0f));
    if (i == 300 || i == 700) array.resize(array.size() - 4);  // truncated
    out.write("sample" + std::to_string(i), {{"npy", array}});
  }
  out.close();
  const auto samples = ps::webdataset(ps::memory_files().add("train-0000.tar", shard)) |
                       ps::decode<ps::field<"npy", ps::npy<float>>>;

  // The slot of a bad sample is zero and not valid; no other sample moves.
  auto skipping = (samples | ps::bad_samples::skip(100) | ps::batch(64)).open();
  float sum = 0;
  std::size_t valid = 0, slots = 0;
  for (auto&& b : skipping.epoch(0)) {
    for (const float x : ps::get<"npy">(b).flat()) sum += x;
    valid += b.valid_size();
    slots += b.size();
    for (std::size_t i = 0; i < b.size(); ++i)
      if (b.valid()[i] == 0) std::printf("skipped %s\n", b.keys()[i].c_str());
  }
  const bool holes =
      slots == 1000 && valid == 998 && sum == 8.0f * 998 && skipping.bad_samples().skipped == 2;

  // Every slot is filled, at most one in a hundred with a replacement.
  const auto path = std::filesystem::temp_directory_path() /
                    ("penstock_bad_samples_" + std::to_string(std::random_device{}()) + ".jsonl");
  auto replacing =
      (samples |
       ps::bad_samples::replace(ps::bad_samples::fraction(0.01), ps::bad_samples::ledger(path.string())) |
       ps::batch(64))
          .open();
  valid = 0;
  for (auto&& b : replacing.epoch(0)) valid += b.valid_size();
  const bool filled = valid == 1000 && replacing.bad_samples().replaced == 2;
  std::ifstream ledger(path);
  std::size_t lines = 0;
  for (std::string line; std::getline(ledger, line); ++lines) std::puts(line.c_str());
  std::filesystem::remove(path);
  return holes && filled && lines == 2 ? 0 : 1;
}
