// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/mistake.hpp>
#include <penstock/core/name.hpp>

#include <concepts>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace penstock::inline v0_1 {

namespace mistakes {

struct no_such_field : about_element {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: no field of that name reaches this stage; this error names those that do, in "
                  "arrives_here<...>");
  }
};
struct field_before_decode : about_element {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: the members of this sample are not decoded yet, and its type does not name them; "
        "write decode<field<\"jpg\", jpeg>, ...> or fields<\"jpg\", ...> before this stage, with the "
        "names of your members");
  }
};
struct field_twice : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>, "penstock: the same field is named twice; name each field once");
  }
};

}  // namespace mistakes

/// One field of a record: a name (as a type) and the value's type. Written `field<"jpg", T>`.
template <class Name, class T>
struct basic_field {
  using name_type = Name;
  using type = T;
  static constexpr std::string_view name = Name::value;
};

/// A field's name and its type: `field<"cls", int>` in a record, `field<"jpg", jpeg>` in a list of codecs.
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

/// Says that values are given by functions that make them.
struct made_by {};

/// One value of a record. Not a std::tuple, because that is not trivially copyable in every standard library.
template <std::size_t I, class T>
struct record_value {
  T value;

  constexpr record_value()
    requires std::default_initializable<T>
      : value() {}
  template <class U>
  constexpr record_value(std::in_place_t, U&& given) : value(static_cast<T>(std::forward<U>(given))) {}
  template <class Make>
  constexpr record_value(made_by, const Make& make) : value(make()) {}
  friend bool operator==(const record_value&, const record_value&) = default;
};

template <class Indices, class... Ts>
struct record_values;
template <std::size_t... Is, class... Ts>
struct record_values<std::index_sequence<Is...>, Ts...> : record_value<Is, Ts>... {
  constexpr record_values() = default;
  template <class... Us>
  constexpr explicit record_values(std::in_place_t, Us&&... given)
      : record_value<Is, Ts>(std::in_place, std::forward<Us>(given))... {}
  template <class... Makes>
  constexpr explicit record_values(made_by how, const Makes&... makes)
      : record_value<Is, Ts>(how, makes)... {}
  friend bool operator==(const record_values&, const record_values&) = default;
};

template <std::size_t I, class T>
constexpr T& value_at(record_value<I, T>& v) noexcept {
  return v.value;
}
template <std::size_t I, class T>
constexpr const T& value_at(const record_value<I, T>& v) noexcept {
  return v.value;
}
template <std::size_t I, class T>
constexpr T&& value_at(record_value<I, T>&& v) noexcept {
  return static_cast<T&&>(v.value);
}

}  // namespace detail

/// A sample: values whose names are known at compile time. `get<"jpg">(r)` reads one; structured bindings
/// read all of them in order.
///
/// Stores its values one after another: no allocation, and trivially copyable if its values are.
template <class... Fields>
class record {
  using storage_type =
      detail::record_values<std::make_index_sequence<sizeof...(Fields)>, typename Fields::type...>;

 public:
  static_assert(
      detail::names_differ<Fields...>() || sizeof...(Fields) == 0,
      "penstock: a record needs a different name for each field; with equal names the last one would "
      "win");

  using is_record = void;
  static constexpr std::size_t size = sizeof...(Fields);
  template <std::size_t I>
  using field_at = std::tuple_element_t<I, std::tuple<Fields...>>;
  template <class Name>
  static constexpr std::size_t index_of = detail::index_of_field<Name, Fields...>();

  constexpr record() = default;
  template <class... Us>
    requires(sizeof...(Us) == sizeof...(Fields) && sizeof...(Us) > 0 &&
             (std::is_constructible_v<typename Fields::type, Us&&> && ...))
  constexpr explicit record(Us&&... values) : storage_(std::in_place, std::forward<Us>(values)...) {}
  // Each value is what a function returns, in the order of the fields, and is made where it stays.
  template <class... Makes>
    requires(sizeof...(Makes) == sizeof...(Fields))
  constexpr explicit record(detail::made_by how, const Makes&... makes) : storage_(how, makes...) {}

  /// The value at index `I`; `get` calls it.
  template <std::size_t I>
  [[nodiscard]] constexpr auto& at() & noexcept {
    return detail::value_at<I>(storage_);
  }
  template <std::size_t I>
  [[nodiscard]] constexpr const auto& at() const& noexcept {
    return detail::value_at<I>(storage_);
  }
  template <std::size_t I>
  [[nodiscard]] constexpr auto&& at() && noexcept {
    return detail::value_at<I>(std::move(storage_));
  }
  /// All values, as a tuple of references.
  [[nodiscard]] constexpr std::tuple<typename Fields::type&...> values() & noexcept {
    return refer(*this, indices{});
  }
  [[nodiscard]] constexpr std::tuple<const typename Fields::type&...> values() const& noexcept {
    return refer(*this, indices{});
  }

  friend bool operator==(const record&, const record&) = default;

 private:
  using indices = std::make_index_sequence<sizeof...(Fields)>;
  template <class Self, std::size_t... Is>
  static constexpr auto refer(Self& self, std::index_sequence<Is...>) noexcept {
    return std::tie(self.template at<Is>()...);
  }

  [[no_unique_address]] storage_type storage_;
};

/// Any record, or a reference to one.
template <class T>
concept any_record = requires { typename std::remove_cvref_t<T>::is_record; };

/// Whether record `R` has a field named `Name`.
template <class R, class Name>
concept has_field = any_record<R> && (std::remove_cvref_t<R>::template index_of<Name> != detail::not_found);

/// Shows in a compiler's message the fields that there are.
template <class... Names>
struct fields_are {};

namespace mistakes {

struct no_such_field_in_batch : about_element {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: the batch has no field of that name; this error names those that it has, in "
                  "fields_are<...>");
  }
};

}  // namespace mistakes

namespace detail {

template <class Record>
struct names_of_record : std::type_identity<fields_are<>> {};
template <class... Fields>
struct names_of_record<record<Fields...>> : std::type_identity<fields_are<typename Fields::name_type...>> {};

}  // namespace detail

/// The value of the field `Name` of a record: `get<"jpg">(sample)`. Costs nothing.
template <fixed_string Name, any_record R>
[[nodiscard]] constexpr decltype(auto) get(R&& r) noexcept {
  constexpr std::size_t i = std::remove_cvref_t<R>::template index_of<name_of<Name>>;
  static_assert(
      i != detail::not_found,
      "penstock: get: this record has no field of that name; see the record's type for those it has");
  if constexpr (i != detail::not_found)
    return (std::forward<R>(r).template at<i>());
  else
    return 0;  // so that this is the only error
}

/// The value of the field at index `I`, in the order of the record's type.
template <std::size_t I, any_record R>
[[nodiscard]] constexpr decltype(auto) get(R&& r) noexcept {
  return (std::forward<R>(r).template at<I>());
}

}  // namespace penstock::inline v0_1

template <class... Fields>
struct std::tuple_size<penstock::record<Fields...>> : std::integral_constant<std::size_t, sizeof...(Fields)> {
};

template <std::size_t I, class... Fields>
struct std::tuple_element<I, penstock::record<Fields...>> {
  using type = typename penstock::record<Fields...>::template field_at<I>::type;
};
