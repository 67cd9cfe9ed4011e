// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/destination.hpp>
#include <penstock/core/element.hpp>
#include <penstock/core/record.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/core/whole.hpp>

#include <array>
#include <concepts>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

/// Elements that are kept in memory and shown again and again: the form that owns them, and the view of it
/// that stages get, as often as they ask.
namespace penstock::inline v0_1 {

/// Values of an array whose type knows its shape, as `Of` did.
template <class Of>
class shown_array {
 public:
  using unfinished = void;
  using value_type = typename Of::value_type;
  static constexpr extents static_shape = Of::static_shape;

  explicit shown_array(const value_type* values) noexcept : values_(values) {}
  [[nodiscard]] static constexpr extents shape() noexcept { return static_shape; }
  void write_to(const destination<value_type>& into) const {
    into.copy_from(std::span(values_, detail::to_size(static_shape.elements())));
  }
  [[nodiscard]] tensor_view<const value_type> finish() const noexcept { return {values_, static_shape}; }

 private:
  const value_type* values_;
};

namespace detail {

template <class Of>
class cached_array {
 public:
  void assign(const Of& array) { make_whole(array, values_); }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return whole_size(values_.values()); }
  [[nodiscard]] shown_array<Of> shown() const noexcept { return shown_array<Of>(values_.values().data()); }

 private:
  whole_tensor<typename Of::value_type> values_;
};

template <class T>
struct cached_form : std::type_identity<whole<T>> {};
/// Also of a mapped file: what is kept does not depend on the page cache.
template <blob T>
struct cached_form<T> : std::type_identity<whole_bytes> {};
template <static_array_expression T>
  requires(!requires { typename kept_as<T>::type; })
struct cached_form<T> : std::type_identity<cached_array<T>> {};
template <class T>
  requires requires { typename kept_as<T>::type; }
struct cached_form<T> : std::type_identity<typename kept_as<T>::type> {};
template <class... Fields>
struct cached_form<record<Fields...>>
    : std::type_identity<
          record<basic_field<typename Fields::name_type,
                             typename cached_form<std::remove_cvref_t<typename Fields::type>>::type>...>> {};

template <class K>
inline constexpr bool is_whole_tensor = false;
template <class T>
inline constexpr bool is_whole_tensor<whole_tensor<T>> = true;

template <class K>
struct variant_lends : std::false_type {};

/// Whether a kept form would refer to something that it does not own: views within other types, such as an
/// array of texts, are not copied.
template <class K>
inline constexpr bool lends = unfinished<K> || requires { typename K::is_view; } || variant_lends<K>::value;
template <class C, class Traits>
inline constexpr bool lends<std::basic_string_view<C, Traits>> = true;
template <class T, std::size_t N>
inline constexpr bool lends<std::span<T, N>> = true;
template <class T>
inline constexpr bool lends<tensor_view<T>> = true;
template <class T>
inline constexpr bool lends<tensor_part<T>> = true;
template <class T>
inline constexpr bool lends<strided_view<T>> = true;
template <class T>
inline constexpr bool lends<std::optional<T>> = lends<T>;
template <class T, std::size_t N>
inline constexpr bool lends<std::array<T, N>> = lends<T>;
template <class T, class A>
inline constexpr bool lends<std::vector<T, A>> = lends<T>;
template <class A, class B>
inline constexpr bool lends<std::pair<A, B>> = lends<A> || lends<B>;
template <class... Ts>
inline constexpr bool lends<std::tuple<Ts...>> = (lends<Ts> || ...);
/// A std::variant, whose header few programs need.
template <template <class...> class Variant, class... Ts>
  requires requires(const Variant<Ts...>& v) { v.valueless_by_exception(); }
struct variant_lends<Variant<Ts...>> : std::bool_constant<(lends<Ts> || ...)> {};
template <class... Fields>
inline constexpr bool lends<record<Fields...>> = (lends<std::remove_cvref_t<typename Fields::type>> || ...);

/// Bytes that a value owns outside of its own object, as far as its type shows them: those of standard
/// containers, of what they hold, and of optional values.
template <class T>
[[nodiscard]] std::uint64_t bytes_owned(const T& value) {
  if constexpr (std::is_trivially_copyable_v<T>) {
    return 0;
  } else if constexpr (requires {
                         value.has_value();
                         *value;
                       }) {
    return value.has_value() ? bytes_owned(*value) : 0;
  } else if constexpr (requires { std::tuple_size<T>::value; }) {
    return std::apply([](const auto&... all) { return (bytes_owned(all) + ... + std::uint64_t{0}); }, value);
  } else if constexpr (requires {
                         typename T::value_type;
                         value.begin();
                         value.end();
                         value.size();
                       }) {
    using member = typename T::value_type;
    if constexpr (std::same_as<member, T>) {
      return 0;
    } else {
      std::uint64_t bytes = std::uint64_t{value.size()} * sizeof(member);
      if constexpr (!std::is_trivially_copyable_v<member>)
        for (const auto& one : value) bytes += bytes_owned(one);
      return bytes;
    }
  } else {
    return 0;
  }
}

template <class K>
concept shows_itself = requires(const K& k) {
  k.shown();
  { k.bytes() } -> std::same_as<std::uint64_t>;
};

}  // namespace detail

/// The form in which an element of type `T` is kept: it owns everything that its `shown_of` refers to.
template <class T>
using kept = typename detail::cached_form<std::remove_cvref_t<T>>::type;

/// Whether an element's kept form owns all that it refers to. Views are copied, and so are those in records;
/// those in other types, such as `std::optional<std::string_view>`, are not.
template <class T>
inline constexpr bool owned_when_cached = !detail::lends<kept<T>>;

/// Whether an element can be kept: all but samples whose members are known only at run time, and those that
/// would not own what they refer to.
template <class T>
inline constexpr bool keepable = !open_sample<T> && owned_when_cached<T>;
template <class... Fields>
inline constexpr bool keepable<record<Fields...>> =
    (keepable<std::remove_cvref_t<typename Fields::type>> && ...);

/// Copies an element into its kept form.
template <class V, class K>
void make_kept(V&& value, K& into) {
  if constexpr (any_record<std::remove_cvref_t<V>>) {
    [&]<std::size_t... Is>(std::index_sequence<Is...>) {
      (make_kept(get<Is>(std::forward<V>(value)), get<Is>(into)), ...);
    }(std::make_index_sequence<std::remove_cvref_t<V>::size>{});
  } else if constexpr (detail::shows_itself<K>) {
    into.assign(value);
  } else {
    make_whole(std::forward<V>(value), into);
  }
}

/// Bytes of a kept element, without those of its own object; of a type that is neither a standard container
/// nor says `bytes()`, none.
template <class K>
[[nodiscard]] std::uint64_t bytes_of_kept(const K& kept) {
  if constexpr (any_record<K>) {
    return [&]<std::size_t... Is>(std::index_sequence<Is...>) {
      return (bytes_of_kept(get<Is>(kept)) + ... + std::uint64_t{0});
    }(std::make_index_sequence<K::size>{});
  } else if constexpr (detail::shows_itself<K>) {
    return kept.bytes();
  } else if constexpr (detail::is_whole_tensor<K>) {
    return detail::whole_size(kept.values());
  } else if constexpr (std::same_as<K, whole_bytes>) {
    return kept.size();
  } else {
    return detail::bytes_owned(kept);
  }
}

/// What a kept element is shown as, valid as long as it is kept: bytes, texts, lists and arrays as views of
/// them, numbers as copies, anything else in place.
template <class K>
[[nodiscard]] decltype(auto) show_cached(const K& kept) {
  if constexpr (any_record<K>) {
    return [&]<class... Fields, std::size_t... Is>(const record<Fields...>& all, std::index_sequence<Is...>) {
      return record<basic_field<typename Fields::name_type,
                                std::remove_cvref_t<decltype(show_cached(get<Is>(all)))>>...>(
          show_cached(get<Is>(all))...);
    }(kept, std::make_index_sequence<K::size>{});
  } else if constexpr (detail::shows_itself<K>) {
    return kept.shown();
  } else if constexpr (std::same_as<K, whole_bytes>) {
    return kept.view();
  } else if constexpr (std::same_as<K, std::string>) {
    return std::string_view(kept);
  } else if constexpr (detail::is_whole_tensor<K>) {
    return kept.view();
  } else if constexpr (std::is_trivially_copyable_v<K>) {
    return K(kept);
  } else if constexpr (requires { std::span(kept.data(), kept.size()); } && detail::resizable_values<K>) {
    return std::span(kept.data(), kept.size());
  } else {
    return static_cast<const K&>(kept);
  }
}

/// The type of elements behind a stage that keeps those of type `T`.
template <class T>
using shown_of = decltype(show_cached(std::declval<const kept<T>&>()));

/// A place in an expression where samples may be kept, as `keep_in_memory(limit, keep_at::automatic)`
/// measured it.
struct kept_place {
  std::string behind;        ///< the source, or the stage, whose output is kept there
  double saved_seconds = 0;  ///< by a kept sample; below 0 if it takes longer to show than to make
  double bytes = 0;          ///< that a kept sample takes
  bool differs = false;      ///< values could be others, as of images that are decoded smaller
  friend bool operator==(const kept_place&, const kept_place&) = default;
};
/// Where `keep_in_memory(limit, keep_at::automatic)` keeps samples, and why.
struct kept_choice {
  static constexpr std::size_t undecided = static_cast<std::size_t>(-1);
  std::vector<kept_place> places;  ///< in the order of the expression
  std::size_t chosen = undecided;  ///< which of them; their number if keeping saves nothing
  bool measured = true;            ///< false if the program said which
  double whole_seconds = 0;        ///< of a sample of which nothing is kept
  std::uint64_t limit = 0;         ///< in bytes
  std::uint64_t samples = 0;       ///< of the source
  std::string random_behind;       ///< the stage that draws random numbers, behind which nothing can be kept
  friend bool operator==(const kept_choice&, const kept_choice&) = default;
};

/// The samples that a run keeps in memory.
struct kept_counters {
  std::uint64_t samples = 0;           ///< in memory now
  std::uint64_t bytes = 0;             ///< that they take
  std::uint64_t hits = 0;              ///< how often one of them was shown instead of being made again
  std::uint64_t uncached = 0;          ///< how often one was made for which there was no room
  std::vector<kept_choice> choices{};  ///< of each `keep_in_memory(limit, keep_at::automatic)`

  kept_counters& operator+=(const kept_counters& other) {
    samples += other.samples;
    bytes += other.bytes;
    hits += other.hits;
    uncached += other.uncached;
    choices.insert(choices.end(), other.choices.begin(), other.choices.end());
    return *this;
  }
  friend bool operator==(const kept_counters&, const kept_counters&) = default;
};

}  // namespace penstock::inline v0_1
