// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/element.hpp>
#include <penstock/core/open_sample.hpp>
#include <penstock/core/strided_view.hpp>
#include <penstock/core/tensor.hpp>

#include <array>
#include <concepts>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

/// What is known about an element's shape before the element exists: the shape classes of a batch's slots.
namespace penstock::inline v0_1 {

/// `fixed`: known from the type, written in place. `announced`: known at run time before the bytes are
/// written (blobs, npy, images, containers). `discovered`: known only after decoding (texts); needs a collate
/// policy. `none`: cannot be batched.
enum class shape_class { fixed, announced, discovered, none };

namespace detail {

/// A resizable container of numbers, from any library; texts are a different kind of element.
template <class V>
concept resizable_values = requires(V& v, std::size_t n) {
  requires std::is_trivially_copyable_v<typename V::value_type>;
  requires !requires { typename V::traits_type; };
  v.resize(n);
  { v.data() } -> std::same_as<typename V::value_type*>;
};

/// What a batch stores for an element: the type of its numbers, and the shape class.
template <class V>
struct stored {
  static constexpr shape_class shape =
      std::is_trivially_copyable_v<V> && std::is_object_v<V> && !std::is_pointer_v<V> ? shape_class::fixed
                                                                                      : shape_class::none;
  using type = V;
  static constexpr std::size_t elements = 1;
  static constexpr bool scalar = true;
};
template <class V, std::size_t N>
struct stored_fixed {
  static constexpr shape_class shape = shape_class::fixed;
  using type = V;
  static constexpr std::size_t elements = N;
  static constexpr bool scalar = false;
};
template <class T, std::size_t N>
  requires std::is_trivially_copyable_v<T>
struct stored<std::array<T, N>> : stored_fixed<T, N> {};
template <class V, shape_class S>
struct stored_flexible {
  static constexpr shape_class shape = S;
  using type = V;
};
template <blob V>
struct stored<V> : stored_flexible<std::byte, shape_class::announced> {};
template <array_expression V>
struct stored<V> : stored_flexible<typename V::value_type, shape_class::announced> {};
template <static_array_expression V>
struct stored<V>
    : stored_fixed<typename V::value_type, static_cast<std::size_t>(V::static_shape.elements())> {};
template <class T>
struct stored<tensor_view<T>> : stored_flexible<std::remove_cv_t<T>, shape_class::announced> {};
template <class T>
struct stored<tensor_part<T>> : stored<tensor_view<T>> {};
template <class T>
struct stored<strided_view<T>> : stored_flexible<std::remove_cv_t<T>, shape_class::announced> {};
template <class T, std::size_t N>
struct stored<std::span<T, N>> : stored_flexible<std::remove_cv_t<T>, shape_class::announced> {};
template <class V>
  requires resizable_values<V>
struct stored<V> : stored_flexible<typename V::value_type, shape_class::announced> {};
template <>
struct stored<std::string> : stored_flexible<char, shape_class::discovered> {};
template <>
struct stored<std::string_view> : stored_flexible<char, shape_class::discovered> {};
template <open_sample V>
struct stored<V> {
  static constexpr shape_class shape = shape_class::none;
  using type = void;
};

}  // namespace detail

/// The shape class of an element that is not a record.
template <class V>
inline constexpr shape_class shape_class_of = detail::stored<std::remove_cvref_t<V>>::shape;

namespace detail {

/// The rank of a value; -1 if its type does not tell.
template <class V>
inline constexpr int value_rank = [] {
  if constexpr (static_array_expression<V>)
    return static_cast<int>(V::static_shape.rank());
  else if constexpr (shape_class_of<V> == shape_class::fixed)
    return stored<V>::scalar ? 0 : 1;
  else
    return requires(const V& v) { v.shape(); } ? -1 : 1;
}();

}  // namespace detail

}  // namespace penstock::inline v0_1
