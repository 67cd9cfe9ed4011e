// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/pipe.hpp>

#include <string>
#include <string_view>

namespace penstock::inline v0_1 {

namespace mistakes {

struct require_nothing : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: require<> names no guarantee; write require<guarantee::elastic> or another");
  }
};

}  // namespace mistakes

/// Makes the compiler check that the chain up to here keeps guarantees: `| require<guarantee::elastic>`. Does
/// nothing at run time; if a guarantee is lost, a single error names the stage that loses it.
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
  static consteval auto diagnose() {
    if constexpr (sizeof...(Gs) == 0)
      return mistakes::require_nothing{};
    else
      return typename detail::first_mistake<
          mistakes::unless<Context::facts.keeps(Gs), mistakes::not_kept<Gs>>...>::type{};
  }
};

template <guarantee... Gs>
inline constexpr require_stage<Gs...> require{};

}  // namespace penstock::inline v0_1
