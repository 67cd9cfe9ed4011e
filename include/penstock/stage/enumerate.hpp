// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/pipe.hpp>

#include <string_view>
#include <type_traits>
#include <utility>

namespace penstock::inline v0_1 {

namespace mistakes {

struct enumerate_after_filter : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: enumerate gives a sample's position and stands after filter or unbatch; move "
                  "it before");
  }
};

}  // namespace mistakes

/// Adds each sample's index in the global order of its epoch: field "index" of a record; other elements
/// become a record of "index" and "value".
///
/// Pointwise; keeps all five guarantees. The index is the same on every rank. It counts positions, so write
/// `enumerate` before filter and unbatch. Cost: none.
///
///     auto places = from(names) | enumerate | map([](auto r) { return get<"index">(r); });
struct enumerate_stage {
  using penstock_part = pointwise_tag;
  static constexpr std::string_view stage_name = "enumerate";
  static constexpr bool tells_position = true;

  template <class V, class Call>
  constexpr auto apply(V&& value, const Call& c) const {
    if constexpr (any_record<V>) {
      return [&]<std::size_t... Is>(std::index_sequence<Is...>) {
        using type = std::remove_cvref_t<V>;
        return record<field<"index", std::uint64_t>, typename type::template field_at<Is>...>(
            c.at.index, get<Is>(std::forward<V>(value))...);
      }(std::make_index_sequence<std::remove_cvref_t<V>::size>{});
    } else {
      return record<field<"index", std::uint64_t>, field<"value", std::remove_cvref_t<V>>>(
          c.at.index, std::forward<V>(value));
    }
  }
  template <class Context>
  static consteval auto diagnose() {
    constexpr bool twice = has_field<typename Context::element, name_of<"index">>;
    return typename detail::first_mistake<
        mistakes::unless<!Context::facts.decided, mistakes::enumerate_after_filter>,
        mistakes::unless<!twice, mistakes::field_twice>>::type{};
  }
};

inline constexpr enumerate_stage enumerate{};

}  // namespace penstock::inline v0_1
