// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Catch2 3.x and 2.13, whichever is installed, under one include.

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

#include <string>

namespace penstock_test {

/// A string matcher "contains this part"; the two generations of Catch2 spell it differently.
[[nodiscard]] inline auto contains(const std::string& part) {
#if __has_include(<catch2/catch_all.hpp>)
  return Catch::Matchers::ContainsSubstring(part);
#else
  return Catch::Matchers::Contains(part);
#endif
}

}  // namespace penstock_test
