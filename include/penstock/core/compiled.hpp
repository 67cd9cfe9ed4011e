// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

/// Where definitions live: in the headers, inline, unless a program links `penstock::compiled`. That target,
/// and nothing else, defines PENSTOCK_COMPILED: the program then sees declarations, and the library holds the
/// definitions. They are the same ones; no macro chooses what they do.
///
/// The bodies of `x.hpp` that need no template stand in `x.ipp`, each marked PENSTOCK_INLINE.
#ifdef PENSTOCK_COMPILED
#define PENSTOCK_INLINE
#else
#define PENSTOCK_INLINE inline
#endif
