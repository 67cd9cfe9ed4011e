// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/pipe.hpp>

#include <string>
#include <string_view>

namespace penstock::inline v0_1 {

/// Asks the compiler to check that the chain up to here keeps guarantees: `| require<guarantee::elastic>`.
/// Does nothing at run time; where one is lost, the one error names the stage that lost it.
template <guarantee... Gs>
struct require_stage {
  using penstock_part = require_tag;
  static constexpr std::string_view stage_name = "require";

  [[nodiscard]] std::string describe() const {
    std::string text = "require<";
    std::size_t i = 0;
    ((text.append(i++ == 0 ? "" : ", ").append(to_string(Gs))), ...);
    return text + ">";
  }
  template <class Context>
  static consteval mistake diagnose() {
    if constexpr (sizeof...(Gs) == 0) return mistake::require_nothing;
    mistake found = mistake::none;
    ((found = found != mistake::none ? found : Context::facts.lost_by_whom(Gs)), ...);
    return found;
  }
};

template <guarantee... Gs>
inline constexpr require_stage<Gs...> require{};

}  // namespace penstock::inline v0_1
