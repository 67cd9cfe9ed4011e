// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/npy.hpp>
#include <penstock/source/shard_writer.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

/// Makes a folder with shards train-0000.tar and so on, and makes it the working directory. The destructor
/// removes it.
class made_up_shards {
 public:
  explicit made_up_shards(const std::string& name, std::uint64_t shards, std::uint64_t samples_per_shard)
      : before_(std::filesystem::current_path()), place_(before_ / ("made_up_shards_" + name)) {
    std::filesystem::remove_all(place_);  // left by a killed program
    std::filesystem::create_directories(place_);
    std::filesystem::current_path(place_);
    penstock::shard_writer out("train-%04d.tar", {.maxcount = samples_per_shard});
    for (std::uint64_t i = 0; i < shards * samples_per_shard; ++i) {
      std::vector<std::uint8_t> image(28 * 28, static_cast<std::uint8_t>(i));
      out.write(std::to_string(i),
                {{"npy", penstock::npy_bytes<std::uint8_t>(penstock::extents(28, 28), image)},
                 {"cls", std::to_string(i % 10)},
                 {"txt", std::string(i % 7, 'x')}});
    }
    out.close();
  }
  made_up_shards(const made_up_shards&) = delete;
  made_up_shards& operator=(const made_up_shards&) = delete;
  ~made_up_shards() {
    std::filesystem::current_path(before_);
    std::error_code ignored;
    std::filesystem::remove_all(place_, ignored);
  }

 private:
  std::filesystem::path before_, place_;
};
