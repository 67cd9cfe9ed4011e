// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/element.hpp>
#include <penstock/core/open_sample.hpp>
#include <penstock/core/projection.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/source/joined/joined_plans.hpp>
#include <penstock/source/joined/plan_reader.hpp>

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

/// Reading one column of a plan's rows, from the first to the last.
namespace penstock::inline v0_1::detail {

/// A `decode` of members by their names, which can be had for one of them alone.
template <class Stage, class Name>
concept narrows_to = requires(const Stage& stage) { stage.template only<Name>(); };

template <class Name, class Plan>
inline constexpr bool narrows = false;
template <class Name, class Source, narrows_to<Name> Stage>
  requires open_sample<typename Source::element>
inline constexpr bool narrows<Name, plan<Source, Stage>> = true;

/// The plan with one field only, where it does nothing but decode members of open samples; otherwise the
/// plan.
template <class Name, class Plan>
[[nodiscard]] auto narrowed_to(const Plan& p) {
  if constexpr (narrows<Name, Plan>) {
    const auto stage = at<0>(p.stages()).template only<Name>();
    return make_plan(p.source(), make_light_tuple(stage));
  } else {
    return p;
  }
}

template <class... Stages>
consteval bool only_values(const light_tuple<Stages...>*) {
  return ((value_stage<Stages> || seed_annotation<Stages>)&&...);
}
/// Whether a plan has the rows of its source, all of them and in their order.
template <class Plan>
inline constexpr bool keeps_rows =
    !Plan::context::facts.decided && only_values(static_cast<const typename Plan::stages_type*>(nullptr));

/// The value of a column that holds one per row: itself, or that of an array of one element.
template <class V>
[[nodiscard]] decltype(auto) lone_value(const V& value) {
  if constexpr (array_expression<V>) {
    if (const extents shape = value.shape(); shape.elements() != 1)
      throw error(errc::shape, {"a column with one value per row is needed, and a row of this one has shape ",
                                to_string(shape)});
    return typename V::value_type(*value.finish().data());
  } else {
    return (value);
  }
}
template <class V>
using lone_value_of = std::remove_cvref_t<decltype(lone_value(std::declval<const V&>()))>;

/// Calls f(value) for each row of a plan of rows, in the thread that calls. `used`: the fields that f uses.
template <class Plan, class F>
void each_value(const Plan& p, const projection& used, F&& f) {
  const plan_reader<Plan> reader(p, used, p.source().describe());
  typename plan_reader<Plan>::worker worker{};
  for (std::uint64_t row = 0; row < p.source().size(); ++row)
    reader.evaluate({0, row}, worker, [&](const auto& value) { f(value); });
}
/// Says of an error in which file it is, and at which key.
template <class Plan>
void tell_row(const Plan& p, std::uint64_t row, error& e) {
  const auto reader = connect_source(p.source(), projection::none());
  if (const std::string file = url_of(reader, {0, row}); !file.empty()) e.in_file(file);
  e.for_key(key_of(reader, {0, row}));
}

}  // namespace penstock::inline v0_1::detail
