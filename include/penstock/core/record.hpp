// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/name.hpp>

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

namespace penstock::inline v0_1 {

/// One field of a record: a name (as a type) and the value's type. Written `field<"jpg", T>`.
template <class Name, class T>
struct basic_field {
  using name_type = Name;
  using type = T;
  static constexpr std::string_view name = Name::value;
};

/// A field's name and what it holds: `field<"cls", int>` in a record, `field<"jpg", jpeg>` in a list of codecs.
template <fixed_string Name, class T>
using field = basic_field<name_of<Name>, T>;

namespace detail {

inline constexpr std::size_t not_found = static_cast<std::size_t>(-1);

template <class Name, class... Fields>
consteval std::size_t index_of_field() {
  std::size_t found = not_found, i = 0;
  ((std::is_same_v<Name, typename Fields::name_type> ? (found = i, ++i) : ++i), ...);
  return found;
}

template <class... Fields>
consteval bool names_differ() {
  std::size_t i = 0;
  bool differ = true;
  ((differ = differ && index_of_field<typename Fields::name_type, Fields...>() == i++), ...);
  return differ;
}

}  // namespace detail

/// A sample: values with names known at compile time. `get<"jpg">(r)` reads one, structured bindings read all in order.
///
/// An aggregate of its values: no allocation, no padding beyond a tuple's, trivially copyable when its values are.
template <class... Fields>
class record {
 public:
  static_assert(detail::names_differ<Fields...>() || sizeof...(Fields) == 0,
                "a record needs a different name for each field; as it stands the last of equal names counts");

  using is_record = void;
  using values_type = std::tuple<typename Fields::type...>;
  static constexpr std::size_t size = sizeof...(Fields);
  template <std::size_t I>
  using field_at = std::tuple_element_t<I, std::tuple<Fields...>>;
  template <class Name>
  static constexpr std::size_t index_of = detail::index_of_field<Name, Fields...>();

  constexpr record() = default;
  template <class... Us>
    requires(sizeof...(Us) == sizeof...(Fields) && sizeof...(Us) > 0 &&
             (std::is_constructible_v<typename Fields::type, Us &&> && ...))
  constexpr explicit record(Us&&... values) : values_(std::forward<Us>(values)...) {}

  [[nodiscard]] constexpr values_type& values() & noexcept { return values_; }
  [[nodiscard]] constexpr const values_type& values() const& noexcept { return values_; }
  [[nodiscard]] constexpr values_type&& values() && noexcept { return std::move(values_); }

  friend constexpr bool operator==(const record&, const record&) = default;

 private:
  values_type values_{};
};

template <class T>
concept any_record = requires { typename std::remove_cvref_t<T>::is_record; };

/// Whether record `R` has a field of that name.
template <class R, class Name>
concept has_field = any_record<R> && (std::remove_cvref_t<R>::template index_of<Name> != detail::not_found);

/// The value of the field `Name` of a record: `get<"jpg">(sample)`. Costs nothing.
template <fixed_string Name, any_record R>
[[nodiscard]] constexpr decltype(auto) get(R&& r) noexcept {
  constexpr std::size_t i = std::remove_cvref_t<R>::template index_of<name_of<Name>>;
  static_assert(i != detail::not_found, "get: this record has no field of that name; see the record's type for those it has");
  if constexpr (i != detail::not_found) return std::get<i>(std::forward<R>(r).values());
}

/// The value of the field at place `I`, in the order of the record's type.
template <std::size_t I, any_record R>
[[nodiscard]] constexpr decltype(auto) get(R&& r) noexcept {
  return std::get<I>(std::forward<R>(r).values());
}

}  // namespace penstock::inline v0_1

template <class... Fields>
struct std::tuple_size<penstock::record<Fields...>> : std::integral_constant<std::size_t, sizeof...(Fields)> {};

template <std::size_t I, class... Fields>
struct std::tuple_element<I, penstock::record<Fields...>> {
  using type = std::tuple_element_t<I, typename penstock::record<Fields...>::values_type>;
};
