// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#if !defined(__cpp_exceptions)
#error "penstock reports errors with exceptions, which -fno-exceptions disables: compile without it"
#endif

/// Include this before anything that throws, so that its #error comes first. It declares nothing.
namespace penstock::inline v0_1 {}
