// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <system_error>

namespace penstock_test {

/// A fresh empty directory under the system's temporary directory, removed with all it holds on destruction.
///
/// Tests run in parallel, in several processes: the name is drawn from the system's entropy and claimed by
/// creating it, so two tests never share one.
class temp_dir {
 public:
  temp_dir() {
    const std::filesystem::path base = std::filesystem::temp_directory_path();
    std::random_device entropy;
    for (;;) {
      const std::uint64_t draw = (std::uint64_t{entropy()} << 32) | entropy();
      path_ = base / ("penstock_test_" + std::to_string(draw));
      if (std::filesystem::create_directory(path_)) {
        return;
      }
    }
  }

  temp_dir(const temp_dir&) = delete;
  temp_dir& operator=(const temp_dir&) = delete;

  ~temp_dir() {
    std::error_code ignored;  // a destructor must not throw, and leftover files do not fail a test
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  /// The path of an entry in the directory; nothing is created.
  [[nodiscard]] std::filesystem::path operator/(const std::filesystem::path& name) const {
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace penstock_test
