// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/element.hpp>
#include <penstock/core/mistake.hpp>
#include <penstock/core/name.hpp>
#include <penstock/core/record.hpp>

#include <concepts>
#include <string_view>
#include <type_traits>

namespace penstock::inline v0_1 {

/// A sample whose members are known only at run time: a key and a table of (name, bytes). `fields<...>`
/// turns it into a record.
///
/// Lives during the call that passes it on. Members are blobs, so a member that you never name is never
/// read.
///   key()            the sample's key
///   size()           the number of members
///   name(i)          the name of member i (in a tar shard the lower-cased extension, "jpg")
///   member(i)        the blob of member i
template <class T>
concept open_sample = requires(const std::remove_cvref_t<T>& s, std::size_t i) {
  typename std::remove_cvref_t<T>::is_open_sample;
  typename std::remove_cvref_t<T>::blob_type;
  { s.key() } -> std::convertible_to<std::string_view>;
  { s.size() } -> std::convertible_to<std::size_t>;
  { s.name(i) } -> std::convertible_to<std::string_view>;
  { s.member(i) } -> std::same_as<typename std::remove_cvref_t<T>::blob_type>;
};

/// An open sample that owns its members.
template <class T>
concept owned_sample = requires { typename std::remove_cvref_t<T>::is_owned_sample; };

namespace detail {

/// The mistake where `Element` lacks a field: before `decode`, members have no names in a type.
template <class Element>
using missing_field_in = std::conditional_t<open_sample<Element> || owned_sample<Element>,
                                            mistakes::field_before_decode, mistakes::no_such_field>;

}  // namespace detail

/// A mistake: the type of an open sample has no fields.
template <fixed_string Name, open_sample S>
[[nodiscard]] constexpr int get(const S&) noexcept {
  static_assert(
      never<S>,
      "penstock: the members of this sample are not decoded yet; write decode<field<\"jpg\", jpeg>, "
      "...> or fields<\"jpg\", ...> before the stage that calls get<\"jpg\">");
  return 0;
}

}  // namespace penstock::inline v0_1
