// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/temp_dir.hpp"

#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>

namespace penstock_test {

/// A file that another program has written.
struct oracle_file {
  std::string_view path, bytes;
};

/// Such files in a folder of their own.
struct oracle_folder {
  temp_dir dir;

  explicit oracle_folder(std::span<const oracle_file> files) {
    for (const oracle_file& one : files) write(one.path, one.bytes);
  }
  void write(std::string_view path, std::string_view bytes) const {
    std::filesystem::create_directories((dir / path).parent_path());
    std::ofstream(dir / path, std::ios::binary) << bytes;
  }
  [[nodiscard]] std::string operator()(std::string_view dataset) const { return (dir / dataset).string(); }
};

}  // namespace penstock_test
