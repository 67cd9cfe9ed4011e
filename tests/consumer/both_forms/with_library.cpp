// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "half.ipp"

half with_library() { return this_half(); }
