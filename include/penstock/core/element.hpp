// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/destination.hpp>
#include <penstock/core/record.hpp>
#include <penstock/core/tensor.hpp>

#include <concepts>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

/// What travels between two stages of a pipeline: values, and *unfinished* values that know how to write
/// themselves to a destination and live only during the call that passes them on.
namespace penstock::inline v0_1 {

/// A value that is not computed yet: it must be finished, or written to its destination, before the call
/// returns.
template <class T>
concept unfinished = requires { typename std::remove_cvref_t<T>::unfinished; };

/// Bytes that have not been read yet. `read_into` writes exactly `size()` bytes to its destination; `finish`
/// returns a view that is valid as long as the blob (in a mapping or in the worker's scratch).
template <class T>
concept blob = unfinished<T> && requires(const std::remove_cvref_t<T>& b, mutable_bytes into) {
  { b.size() } -> std::convertible_to<std::uint64_t>;
  b.read_into(into);
  { b.finish() } -> std::convertible_to<bytes_view>;
};

/// What a codec accepts: a blob, or bytes already in memory (spans of bytes, texts).
template <class T>
concept byte_element = blob<T> || std::convertible_to<const std::remove_cvref_t<T>&, bytes_view> ||
                       std::convertible_to<const std::remove_cvref_t<T>&, std::string_view>;

namespace detail {

template <class T>
concept has_array = unfinished<T> && requires(const std::remove_cvref_t<T>& a) {
  typename std::remove_cvref_t<T>::value_type;
  { a.shape() } -> std::convertible_to<extents>;
};

}  // namespace detail

/// An array that is not computed yet and can write itself anywhere: `write_to` takes a `destination` of shape
/// `shape()`.
template <class T>
concept placed_expression =
    detail::has_array<T> &&
    requires(const std::remove_cvref_t<T>& a,
             const destination<typename std::remove_cvref_t<T>::value_type>& into) { a.write_to(into); };

/// An array that is not computed yet: `write_to` writes its values to a `destination`. If the shape is known
/// at compile time, declare it as `static constexpr extents static_shape`.
///
/// The simple form, `write_to(T*)`, writes `shape().elements()` values to a pointer in row-major order. It is
/// enough for most expressions and costs nothing extra where slots are dense. With `channels_first` or
/// `pitched` slots are not dense: the values are then written to thread-local memory and copied from there.
template <class T>
concept array_expression =
    placed_expression<T> || (detail::has_array<T> && requires(const std::remove_cvref_t<T>& a) {
      a.write_to(static_cast<typename std::remove_cvref_t<T>::value_type*>(nullptr));
    });

/// An array expression whose type knows its shape; even the first batch is written in place.
template <class T>
concept static_array_expression = array_expression<T> && requires {
  { std::remove_cvref_t<T>::static_shape } -> std::convertible_to<extents>;
};

/// Makes an array expression of either form write itself; for expressions composed of others. An expression
/// of the simple form reaches a destination that is not dense through thread-local memory, which keeps its
/// capacity.
template <array_expression V, class T>
void write_array(const V& array, const destination<T>& into) {
  if constexpr (placed_expression<V>) {
    array.write_to(into);
  } else if (into.dense()) {
    array.write_to(into.data());
  } else {
    thread_local buffer kept;
    buffer dense = std::move(kept);  // `array` may itself be made of such expressions
    const auto count = static_cast<std::size_t>(into.shape().elements());
    dense.resize_for_overwrite(count * sizeof(T));
    T* const values = reinterpret_cast<T*>(dense.data());
    array.write_to(values);
    into.copy_from(std::span<const T>(values, count));
    kept = std::move(dense);
  }
}

/// The bytes of a byte element. Reads a blob, into the worker's scratch unless it is mapped.
template <byte_element T>
[[nodiscard]] bytes_view as_bytes(const T& element) {
  if constexpr (blob<T>)
    return element.finish();
  else if constexpr (std::convertible_to<const T&, bytes_view>)
    return element;
  else
    return bytes_of(element);
}

namespace detail {

template <class T>
struct has_unfinished : std::bool_constant<unfinished<T>> {};
template <class... Fields>
struct has_unfinished<record<Fields...>>
    : std::bool_constant<(has_unfinished<std::remove_cvref_t<typename Fields::type>>::value || ...)> {};

template <class T>
struct finished_type : std::type_identity<T> {};
template <unfinished T>
struct finished_type<T>
    : std::type_identity<decltype(std::declval<const std::remove_cvref_t<T>&>().finish())> {};
template <class... Fields>
  requires(has_unfinished<record<Fields...>>::value)
struct finished_type<record<Fields...>>
    : std::type_identity<record<
          basic_field<typename Fields::name_type, typename finished_type<typename Fields::type>::type>...>> {
};

}  // namespace detail

/// The finished form of a value. Returns the value itself unless it is unfinished or a record with unfinished
/// fields; for those, returns views of the results, valid as long as the value.
template <class T>
[[nodiscard]] constexpr decltype(auto) finish(T&& value) {
  using value_type = std::remove_cvref_t<T>;
  if constexpr (unfinished<value_type>) {
    return value.finish();
  } else if constexpr (detail::has_unfinished<value_type>::value) {
    return [&]<std::size_t... Is>(std::index_sequence<Is...>) {
      return typename detail::finished_type<value_type>::type(
          penstock::finish(get<Is>(static_cast<T&&>(value)))...);
    }(std::make_index_sequence<value_type::size>{});
  } else {
    return static_cast<T&&>(value);
  }
}

/// The return type of `finish` for a value of type `T`.
template <class T>
using finished = decltype(penstock::finish(std::declval<T>()));

/// How elements of type `T` are kept in memory, where a specialisation says so: `type` is a class with
/// `assign(element)`, which copies one; `bytes()`, what that takes; and `shown()`, a view of it that is valid
/// as long as the object. Other elements are kept as `whole<T>`.
template <class T>
struct kept_as {};

}  // namespace penstock::inline v0_1
