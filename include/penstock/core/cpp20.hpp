// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if __cplusplus < 202002L && (!defined(_MSVC_LANG) || _MSVC_LANG < 202002L)
#include <penstock needs C++20: compile with -std=c++20>
#endif
#if !defined(__cpp_exceptions)
#error "penstock reports errors with exceptions, which -fno-exceptions disables: compile without it"
#endif

#include <cstddef>
#include <cstdint>

/// Every header reaches this one before anything else, so that none needs to include what is here. A compiler
/// stops at an include that it cannot find and prints it; after an `#error` it would continue, through
/// thousands of lines that it cannot parse.
namespace penstock::inline v0_1 {}
