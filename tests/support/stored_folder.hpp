// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/memory_files.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace penstock_test {

/// The paths of the files in a folder, and in folders of it, sorted.
[[nodiscard]] inline std::vector<std::string> files_in(const std::filesystem::path& folder) {
  std::vector<std::string> made;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) made.push_back(entry.path().string());
  std::ranges::sort(made);
  return made;
}

/// A folder's files as objects of a store, in a folder that is called otherwise; "" for none.
[[nodiscard]] inline penstock::memory_files stored_folder(const std::filesystem::path& folder,
                                                          const std::string& called) {
  penstock::memory_files made;
  for (const std::string& path : files_in(folder)) {
    std::ifstream in(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    const std::string rest = path.substr(folder.string().size() + 1);
    made.add(called.empty() ? rest : called + "/" + rest, bytes);
  }
  return made;
}

}  // namespace penstock_test
