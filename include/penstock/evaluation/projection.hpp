// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/pack.hpp>
#include <penstock/core/part.hpp>
#include <penstock/core/plan.hpp>
#include <penstock/core/projection.hpp>
#include <penstock/source/concepts.hpp>

namespace penstock::inline v0_1 {

namespace detail {

template <class Element>
constexpr projection first_uses(const pack<>*, const projection& behind) {
  return behind;
}
template <class Element, class Stage, class... Rest>
constexpr projection first_uses(const pack<Stage, Rest...>*, const projection& behind) {
  if constexpr (projecting_stage<Stage, Element>)
    return Stage::template uses<Element>();
  else if constexpr (value_stage<Stage>)
    return {};
  else
    return first_uses<Element>(static_cast<const pack<Rest...>*>(nullptr), behind);
}

}  // namespace detail

/// Which fields of its source's samples a plan uses: its type tells.
///
/// The first value stage decides: `fields<"jpg", "cls">` and `decode<field<"jpg", jpeg>>` of an open sample
/// use what they name, any other stage everything. Where no stage looks at the sample, what is used of the
/// plan's samples counts, which is everything but for a plan that is joined.
template <class Plan>
[[nodiscard]] constexpr projection projection_of(const projection& behind = {}) {
  return detail::first_uses<typename Plan::source_type::element>(
      static_cast<const typename Plan::stages_type*>(nullptr), behind);
}

/// Connects the source of a plan, and tells it what the plan uses.
template <class Plan>
[[nodiscard]] auto connect_source_of(const Plan& p, const projection& behind = {}) {
  return connect_source(p.source(), projection_of<Plan>(behind));
}

}  // namespace penstock::inline v0_1
