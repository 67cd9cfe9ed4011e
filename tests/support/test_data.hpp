// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

namespace penstock_test {

/// A folder of real files written by other tools: $PENSTOCK_TEST_DATA/<folder>, by default
/// ../shared/data/<folder> beside the project. Nothing if the folder does not exist; the test then says so
/// with WARN and returns.
[[nodiscard]] inline std::optional<std::filesystem::path> test_data(std::string_view folder) {
  std::filesystem::path found;
  if (const char* const root = std::getenv("PENSTOCK_TEST_DATA"); root != nullptr && *root != '\0')
    found = root;
  else if (const char* const support = std::getenv("PENSTOCK_TEST_SUPPORT"); support != nullptr)
    found = std::filesystem::path(support).parent_path().parent_path().parent_path() / "shared" / "data";
  else
    return std::nullopt;
  found /= folder;
  std::error_code ignored;
  if (!std::filesystem::is_directory(found, ignored)) {
    return std::nullopt;
  }
  return found;
}

/// True when PENSTOCK_LONG_TESTS is set: property tests then run more rounds.
[[nodiscard]] inline bool long_tests() {
  const char* value = std::getenv("PENSTOCK_LONG_TESTS");
  return value != nullptr && *value != '\0' && *value != '0';
}

}  // namespace penstock_test
