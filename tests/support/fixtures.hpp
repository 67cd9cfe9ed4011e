// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace penstock_test {

/// The path of a file or folder of tests/data, which the repository has.
[[nodiscard]] inline std::filesystem::path fixture(std::string_view name) {
  const char* const support = std::getenv("PENSTOCK_TEST_SUPPORT");
  const std::filesystem::path tests =
      support == nullptr ? "tests" : std::filesystem::path(support).parent_path();
  return tests / "data" / name;
}

}  // namespace penstock_test
