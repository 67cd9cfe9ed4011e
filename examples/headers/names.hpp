// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// What the examples in several rooms' headers use without saying where it comes from.

#include "../reference/made_up_shards.hpp"

#include <penstock/all.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace {

const std::uint64_t epoch = 0, rank = 0, world_size = 2;

constexpr std::uint64_t samples_in_shards = 256;

/// What one does with a batch, or with anything else.
inline constexpr auto train = [](auto&& batch) {
  static_cast<void>(batch);
  return 0.5;  // the loss
};

[[maybe_unused]] void write_file(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace
