// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/stage/map.hpp>

namespace penstock::inline v0_1 {

namespace mistakes {

struct predicate_not_bool : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>, "penstock: filter's function must return bool");
  }
};

}  // namespace mistakes

/// Keeps the samples for which a predicate holds. Made by `filter(f)`.
///
/// In: any element; out: the same. A filter: workers evaluate it in parallel, and survivors keep their
/// order. Loses `indexed` and `lockstep` (`steps(n)` restores it), after `shard` also `elastic`.
/// `f(sample) -> bool` or `f(sample, rng&) -> bool` must be callable when const. If the predicate looks at an
/// unfinished field, the field is read once for it and again for the batch. Cost: the call; after the last
/// filter, survivors are copied once more, in runs.
///
///     auto long_ones = from(words) | filter([](std::string_view w) { return w.size() > 3; });
template <class F>
struct filter_stage {
  using penstock_part = filter_tag;
  static constexpr std::string_view stage_name = "filter";
  using scratch = detail::function_scratch<F>;
  [[no_unique_address]] F function;
  key address;

  using penstock_function = F;
  template <class V, class... More>
  using called_with = decltype(std::declval<const detail::called_function<F>&>()(
      std::declval<detail::argument_of<F, const std::remove_cvref_t<V>&>>(), std::declval<More>()...));
  template <class V, class... More>
  using must_be_called_with = decltype(std::declval<const F&>()(
      std::declval<detail::argument_of<F, const std::remove_cvref_t<V>&>>(), std::declval<More>()...));
  template <class V>
  static constexpr bool uses_random = detail::function_uses_random<F, const std::remove_cvref_t<V>&>;
  [[nodiscard]] constexpr std::uint64_t stream_address() const noexcept { return address.hash; }

  constexpr bool keep(const auto& value, const auto& c) const {
    return static_cast<bool>(detail::call_function(function, value, c));
  }
  template <class Context>
  static consteval auto diagnose() {
    using element = const std::remove_cvref_t<typename Context::element>&;
    using result = typename detail::function_check<F, element>::result;
    using wrong = typename detail::function_check<F, element>::wrong;
    if constexpr (!detail::is_right<wrong>)
      return wrong{};
    else if constexpr (std::convertible_to<result, bool>)
      return mistakes::none{};
    else
      return mistakes::predicate_not_bool{};
  }
};

template <class F>
[[nodiscard]] constexpr auto filter(F function, key address = {}) {
  return filter_stage<F>{std::move(function), address};
}

}  // namespace penstock::inline v0_1
