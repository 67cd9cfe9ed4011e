// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/version.hpp>

#include "support/catch.hpp"

#include <string>

namespace ps = penstock;

TEST_CASE("core/version: the text matches the numbers") {
  const std::string numbers = std::to_string(ps::version_major) + "." + std::to_string(ps::version_minor) +
                              "." + std::to_string(ps::version_patch);
  CHECK(ps::version == numbers);
}
