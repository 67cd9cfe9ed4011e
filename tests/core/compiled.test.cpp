// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/core/compiled.hpp>

#include "support/catch.hpp"

#include <string_view>

#define PENSTOCK_TEXT_OF(...) #__VA_ARGS__
#define PENSTOCK_TEXT(what) std::string_view(PENSTOCK_TEXT_OF(what))

TEST_CASE("core/compiled: definitions are inline unless the library has them") {
#ifdef PENSTOCK_COMPILED
  CHECK(PENSTOCK_TEXT(PENSTOCK_INLINE).empty());
#else
  CHECK(PENSTOCK_TEXT(PENSTOCK_INLINE) == "inline");
#endif
}
