// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/detail/number_text.hpp>

#include <penstock/codec/detail/quoted.hpp>
#include <penstock/core/error.hpp>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE void no_number(bytes_view bytes, std::string_view expected) {
  throw error(errc::format, {"found ", quoted(bytes), " where a ", expected, " was expected"});
}

PENSTOCK_INLINE void number_out_of_range(bytes_view bytes, std::initializer_list<piece> range) {
  throw error(errc::format, {"the number ", quoted(bytes), " is out of range", text(range)});
}

}  // namespace penstock::inline v0_1::detail
