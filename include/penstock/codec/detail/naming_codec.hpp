// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>

#include <string_view>

namespace penstock::inline v0_1::detail {

/// Calls `f`; its errors carry the stage as those of `decode` do. For what a codec does later than its
/// `decode`, in the lazy image that it returned.
template <class F>
decltype(auto) naming_codec(std::string_view codec, F&& f) {
  try {
    return f();
  } catch (error& e) {
    e.in_stage(text({"decode<", codec, ">"}));
    throw;
  }
}

}  // namespace penstock::inline v0_1::detail
