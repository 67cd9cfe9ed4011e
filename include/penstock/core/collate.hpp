// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/record.hpp>

#include <type_traits>

namespace penstock::inline v0_1 {

/// How the values of one field become one piece of a batch. Given to `batch`.
///   stack            equal shapes, one array with one more length in front; another shape is an error at its position
///   pad_to_longest   arrays padded with zeros to the longest of the batch along their first length, with a mask
///   ragged           all values one after another, with offsets
struct stack_policy {};
/// A field's values are padded with zeros to the longest of the batch: a `padded_view`.
struct pad_policy {};
/// A field's values stand one after another, with their offsets: a `ragged_view`.
struct ragged_policy {};

/// An option of `batch`: all shapes must be equal. The default.
inline constexpr stack_policy stack{};
/// An option of `batch`: pads each batch to its longest value.
inline constexpr pad_policy pad_to_longest{};
/// An option of `batch`: values of any length, and their offsets.
inline constexpr ragged_policy ragged{};

/// A policy for one field: `batch(64, collate<"txt">(ragged))`.
template <class Name, class Policy>
struct field_policy {};

/// An option of `batch`: the policy of one field, `collate<"text">(ragged)`.
template <fixed_string Name, class Policy>
[[nodiscard]] constexpr auto collate(Policy) {
  return field_policy<name_of<Name>, Policy>{};
}

namespace detail {

template <class T>
inline constexpr bool is_policy = false;
template <>
inline constexpr bool is_policy<stack_policy> = true;
template <>
inline constexpr bool is_policy<pad_policy> = true;
template <>
inline constexpr bool is_policy<ragged_policy> = true;

template <class Name, class... Policies>
struct own_policy {
  using type = void;
};
template <class Name, class First, class... Rest>
struct own_policy<Name, First, Rest...> : own_policy<Name, Rest...> {};
template <class Name, class Policy, class... Rest>
struct own_policy<Name, field_policy<Name, Policy>, Rest...> {
  using type = Policy;
};

template <class... Policies>
struct common_policy {
  using type = stack_policy;
};
template <class First, class... Rest>
struct common_policy<First, Rest...> : common_policy<Rest...> {};
template <class First, class... Rest>
  requires is_policy<First>
struct common_policy<First, Rest...> {
  using type = First;
};

/// The policy of a field among those given: its own, else the one given for all, else stack.
template <class Name, class... Policies>
struct policy_for {
  using own = typename own_policy<Name, Policies...>::type;
  using type = std::conditional_t<std::is_void_v<own>, typename common_policy<Policies...>::type, own>;
};

}  // namespace detail

}  // namespace penstock::inline v0_1
