// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

/// Definitions live in the headers, inline, unless a program links `penstock::compiled`. That target, and
/// nothing else, defines PENSTOCK_COMPILED: the program then sees only declarations, and the library holds
/// the definitions. They are identical; no macro changes what they do.
///
/// The non-template function bodies of `x.hpp` are in `x.ipp`, each marked PENSTOCK_INLINE.
#ifdef PENSTOCK_COMPILED
#define PENSTOCK_INLINE
#else
#define PENSTOCK_INLINE inline
#endif
