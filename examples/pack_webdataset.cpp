// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Reads Fashion-MNIST (or MNIST) as it is distributed, gzipped IDX files, and writes it as tar shards in the
// WebDataset format: for each image a member `npy` (uint8, 28 x 28) and a member `cls` with the label.

#include "arguments.hpp"

#include <penstock/codec/npy.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/idx_gz.hpp>
#include <penstock/source/shard_writer.hpp>
#include <penstock/stage/workers.hpp>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <set>
#include <string>

namespace ps = penstock;
namespace fs = std::filesystem;

namespace {

void pack(const fs::path& input, const fs::path& output, const std::string& split,
          std::uint64_t samples_per_shard) {
  const auto dataset = ps::idx_gz((input / (split + "-images-idx3-ubyte.gz")).string(),
                                  (input / (split + "-labels-idx1-ubyte.gz")).string()) |
                       ps::workers(1);

  // Each shard appears under its name when it is complete; its index is written beside it.
  ps::shard_writer out((output / (split + "-%06d.tar")).string(),
                       {.maxcount = samples_per_shard, .tar = {.index = true}});
  std::uint64_t number = 0;
  for (auto&& sample : dataset) {
    const auto& image = get<"image">(sample);
    char key[32];
    std::snprintf(key, sizeof key, "%06llu", static_cast<unsigned long long>(number++));
    out.write(key, {{"npy", ps::npy_bytes<std::uint8_t>(image.shape(), image.values())},
                    {"cls", std::to_string(get<"label">(sample))}});
  }
  const ps::manifest written = out.close();

  // Shards of an earlier run with other numbers would be read as part of this dataset.
  std::set<std::string> ours;
  for (const auto& shard : written.shards()) ours.insert(fs::path(shard.name).filename().string());
  for (const auto& entry : fs::directory_iterator(output)) {
    const std::string name = entry.path().filename().string();
    const std::string tar = name.substr(0, name.find(".tar") + 4);
    if (name.starts_with(split + "-") && name.find(".tar") != std::string::npos && !ours.contains(tar))
      fs::remove(entry.path());
  }
  std::printf("%s: %llu samples in %zu shards of %llu bytes\n", split.c_str(),
              static_cast<unsigned long long>(written.samples()), written.shards().size(),
              static_cast<unsigned long long>(written.bytes()));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    arguments given(argc, argv, "pack_webdataset --input DIR --output DIR [--samples-per-shard 1000]");
    const fs::path input = given.text("input"), output = given.text("output");
    const std::uint64_t samples_per_shard = given.number("samples-per-shard", 1000);
    given.done();
    fs::create_directories(output);
    for (const char* split : {"train", "t10k"}) pack(input, output, split, samples_per_shard);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "pack_webdataset: %s\n", e.what());
    return 1;
  }
}
