// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/element.hpp>
#include <penstock/core/light_tuple.hpp>
#include <penstock/core/mistake.hpp>
#include <penstock/core/part.hpp>
#include <penstock/core/shape_class.hpp>

#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>

/// What the two forms of `pack` have in common: their mistakes, and which fields they put into rows.
namespace penstock::inline v0_1 {

namespace mistakes {

struct pack_after_batch : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: pack makes rows of samples, which batch stacks; write pack<\"tokens\">(length, "
                  "4096) | batch(n)");
  }
};
struct two_packs : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: pack after pack; name all fields in one: pack<\"tokens\", \"weights\">(length, "
                  "4096)");
  }
};
struct pack_without_positions : about_expression {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: pack looks up lengths before samples are read, and after filter, unbatch, "
        "shuffle_buffer or a source that is read forward it is unknown which samples come; leave the "
        "lengths out, as pack<\"tokens\">(4096), which packs samples as they come, or choose them "
        "with subset and mix them with shuffle");
  }
};
struct pack_without_numbers : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: pack looks up lengths by sample number, and the numbers of mix, or of joined "
                  "sources with orders, change from epoch to epoch; pack one source");
  }
};
struct pack_of_no_sequence : about_element {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: pack<\"tokens\"> puts sequences one after another, and a field that it names is "
                  "not a one-dimensional array of numbers; name the one that is, and decode it before pack");
  }
};

struct pack_of_no_field : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: pack without lengths packs samples by the lengths of their fields, and none is "
                  "named; write pack<\"tokens\">(4096), or give it what samples cost, pack(cost, 4096)");
  }
};
struct lost_by_online_pack : about_expression {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: require: the guarantee is lost by pack without lengths, which packs the samples that "
        "come to each rank (it loses indexed, lockstep and elastic); give it lengths, as "
        "pack<\"tokens\">(length, 4096); lockstep also comes back with steps(n)");
  }
};

}  // namespace mistakes

namespace detail {

/// Whether values can stand one after another in a row.
template <class V>
inline constexpr bool is_sequence = [] {
  using value = std::remove_cvref_t<V>;
  if constexpr (shape_class_of<value> == shape_class::none)
    return false;
  else
    return std::is_arithmetic_v<typename stored<value>::type> &&
           (value_rank<value> == 1 || value_rank<value> == -1);
}();

/// What both forms of `pack` know of the fields that they name.
template <class... Names>
struct packing_fields {
  /// Whether a field's values are put into rows; void: of samples without names.
  template <class Name>
  static constexpr bool packs =
      std::is_void_v<Name> ? sizeof...(Names) == 0 : (std::same_as<Name, Names> || ...);
  /// Whether it is the first of them, whose padding may have another value than 0.
  template <class Name>
  static constexpr bool comes_first = std::same_as<Name, std::tuple_element_t<0, std::tuple<Names..., void>>>;

  /// A mistake in the place of `pack` or in the fields that it names.
  template <class Context>
  static consteval auto diagnose_fields() {
    using element = std::remove_cvref_t<typename Context::element>;
    if constexpr (sizeof...(Names) == 0)
      return diagnose_field<element>();
    else if constexpr (!any_record<element> || !(has_field<element, Names> && ...))
      return mistakes::no_such_field{};
    else
      return typename detail::first_mistake<
          decltype(diagnose_field<std::tuple_element_t<element::template index_of<Names>, element>>())...>::
          type{};
  }

 private:
  template <class V>
  static consteval auto diagnose_field() {
    if constexpr (detail::is_sequence<V>)
      return mistakes::none{};
    else
      return mistakes::pack_of_no_sequence{};
  }
};
/// How a field is collated: those that are not in rows are ragged unless a policy was chosen for them.
template <class Fields, template <bool> class Rows, class Batch, class Name>
using policy_beside_rows = std::conditional_t<
    Fields::template packs<Name>, Rows<Fields::template comes_first<Name>>,
    std::conditional_t<Batch::template chosen<Name>, typename Batch::template policy<Name>, ragged_policy>>;

}  // namespace detail

}  // namespace penstock::inline v0_1
