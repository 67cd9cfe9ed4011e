// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/cpp20.hpp>

#include "support/catch.hpp"

// That it ends a compilation as C++17 is tests/compile_fail/older_standard.cpp.
TEST_CASE("core/cpp20: a program as C++20 compiles") { STATIC_REQUIRE(__cplusplus >= 202002L); }
