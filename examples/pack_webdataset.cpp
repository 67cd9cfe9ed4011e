// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Reads Fashion-MNIST (or MNIST) as it is distributed, gzipped IDX files, and writes it as tar shards in the
// WebDataset format: for each image a member `npy` (uint8, 28 x 28) and a member `cls` with the label.
// The processes of a launcher, or the tasks of a Slurm job array, divide the shards among them. With
// `--resume 1`, shards that are complete are left as they are.

#include "arguments.hpp"

#include <penstock/codec/npy.hpp>
#include <penstock/order/skip.hpp>
#include <penstock/order/take.hpp>
#include <penstock/order/world.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/idx_gz.hpp>
#include <penstock/source/shard_writer.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/workers.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace ps = penstock;
namespace fs = std::filesystem;

namespace {

/// Whether an earlier process wrote this shard completely, with these samples.
bool is_packed(const std::string& shard, const std::string& first_key, std::uint64_t samples) {
  if (!fs::exists(shard)) return false;
  try {
    const ps::webdataset found(std::vector{shard}, {.index = ps::index_policy::require});
    return found.size() == samples && found.connect().key(0) == first_key;
  } catch (const ps::error&) {  // by another program, or killed before it wrote the index
    return false;
  }
}

std::string key_of(std::uint64_t number) {
  char key[32];
  std::snprintf(key, sizeof key, "%06llu", static_cast<unsigned long long>(number));
  return key;
}

void pack(const fs::path& input, const fs::path& output, const std::string& split,
          std::uint64_t samples_per_shard, const ps::world& here, bool resume) {
  const auto images = ps::idx_gz((input / (split + "-images-idx3-ubyte.gz")).string(),
                                 (input / (split + "-labels-idx1-ubyte.gz")).string());
  const std::string pattern = (output / (split + "-%06d.tar")).string();
  const ps::shard_writer names(pattern);
  const std::uint64_t shards = (images.size() + samples_per_shard - 1) / samples_per_shard;
  std::uint64_t written = 0, there = 0;
  for (std::uint64_t number = here.rank; number < shards; number += here.size) {
    std::uint64_t at = number * samples_per_shard;
    const std::uint64_t count = std::min(samples_per_shard, images.size() - at);
    if (resume && is_packed(names.name(number), key_of(at), count)) {
      ++there;
      continue;
    }
    // Each shard appears under its name when it is complete; its index is written beside it.
    ps::shard_writer out(pattern,
                         {.maxcount = samples_per_shard, .start_shard = number, .tar = {.index = true}});
    for (auto&& sample : images | ps::skip(at) | ps::take(count) | ps::workers(1)) {
      const auto& image = get<"image">(sample);
      out.write(key_of(at++), {{"npy", ps::npy_bytes<std::uint8_t>(image.shape(), image.values())},
                               {"cls", std::to_string(get<"label">(sample))}});
    }
    static_cast<void>(out.close());
    ++written;
  }

  // Shards that an earlier run wrote with other numbers would become part of this dataset.
  if (here.rank == 0) {
    std::set<std::string> ours;
    for (std::uint64_t number = 0; number < shards; ++number)
      ours.insert(fs::path(names.name(number)).filename().string());
    for (const auto& entry : fs::directory_iterator(output)) {
      const std::string name = entry.path().filename().string();
      const std::string tar = name.substr(0, name.find(".tar") + 4);
      if (name.starts_with(split + "-") && name.find(".tar") != std::string::npos && !ours.contains(tar))
        fs::remove(entry.path());
    }
  }
  std::printf("%s: %llu samples in %llu shards; rank %llu of %llu wrote %llu, %llu were there\n",
              split.c_str(), static_cast<unsigned long long>(images.size()),
              static_cast<unsigned long long>(shards), static_cast<unsigned long long>(here.rank),
              static_cast<unsigned long long>(here.size), static_cast<unsigned long long>(written),
              static_cast<unsigned long long>(there));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    constexpr const char* usage =
        "pack_webdataset --input DIR --output DIR [--samples-per-shard 1000] [--resume 1]";
    if (asked_for_help(argc, argv, usage)) return 0;
    arguments given(argc, argv, usage);
    const fs::path input = given.text("input"), output = given.text("output");
    const std::uint64_t samples_per_shard = given.number("samples-per-shard", 1000);
    const bool resume = given.number("resume", 0) != 0;
    given.done();
    if (samples_per_shard == 0) throw std::runtime_error("a shard needs room for at least one sample");
    const ps::world here = ps::world::from_environment({.slurm_array = true});
    fs::create_directories(output);
    for (const char* split : {"train", "t10k"}) pack(input, output, split, samples_per_shard, here, resume);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "pack_webdataset: %s\n", e.what());
    return 1;
  }
}
