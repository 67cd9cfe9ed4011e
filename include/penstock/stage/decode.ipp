// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/stage/decode.hpp>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE void detail::name_codec(error& e, std::string_view codec) {
  e.in_stage(text({"decode<", codec, ">"}));
}

}  // namespace penstock::inline v0_1
