// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

namespace penstock_test {

/// A folder of real files written by other tools: $PENSTOCK_TEST_DATA/<folder>. Nothing if the variable is
/// not set or the folder does not exist; the test then says so with WARN and returns.
[[nodiscard]] inline std::optional<std::filesystem::path> test_data(std::string_view folder) {
  const char* root = std::getenv("PENSTOCK_TEST_DATA");
  if (root == nullptr || *root == '\0') {
    return std::nullopt;
  }
  std::filesystem::path found = std::filesystem::path(root) / folder;
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
