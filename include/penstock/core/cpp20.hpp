// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if __cplusplus < 202002L && (!defined(_MSVC_LANG) || _MSVC_LANG < 202002L)
#include <penstock needs C++20: compile with -std=c++20>
#endif

/// What every header reaches before anything else. A compiler ends at an include that it cannot find, and
/// prints it;
/// behind an `#error` it goes on, through thousands of lines of what it does not know. It declares nothing.
namespace penstock::inline v0_1 {}
