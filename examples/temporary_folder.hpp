// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

/// A new folder, which is removed with all it holds. `place`: where it is made.
class temporary_folder {
 public:
  explicit temporary_folder(const std::string& name,
                            const std::filesystem::path& place = std::filesystem::temp_directory_path()) {
    std::string made = (place / (name + "-XXXXXX")).string();
    if (::mkdtemp(made.data()) == nullptr)
      throw std::runtime_error("no temporary folder can be made: " + made);
    path_ = made;
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  ~temporary_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};
