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

/// The fields of its source's samples that a plan uses, derived from its type.
///
/// The first value stage decides: `fields<"jpg", "cls">` and `decode<field<"jpg", jpeg>>` of an open sample
/// use the fields that they name; any other stage uses everything. If no stage looks at the sample, the
/// result is `behind`, the use of the plan's samples: everything, unless the plan is joined with others.
template <class Plan>
[[nodiscard]] constexpr projection projection_of(const projection& behind = {}) {
  return detail::first_uses<typename Plan::source_type::element>(
      static_cast<const typename Plan::stages_type*>(nullptr), behind);
}

/// Connects the source of a plan and tells it which fields the plan uses.
template <class Plan>
[[nodiscard]] auto connect_source_of(const Plan& p, const projection& behind = {}) {
  return connect_source(p.source(), projection_of<Plan>(behind));
}

}  // namespace penstock::inline v0_1
