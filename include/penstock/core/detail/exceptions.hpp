// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#if !defined(__cpp_exceptions)
#error "penstock tells errors by exceptions, which -fno-exceptions takes away: compile without it"
#endif

/// Included before anything that throws, so that this is the first that a reader sees. It declares nothing.
namespace penstock::inline v0_1 {}
