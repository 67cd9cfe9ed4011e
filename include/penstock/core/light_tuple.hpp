// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#include <type_traits>
#include <utility>

namespace penstock::inline v0_1 {

namespace detail {

template <std::size_t I, class T>
struct tuple_slot {
  T value{};
};
/// Only here the attribute pays; with it Clang 16 initialises nested aggregates through a temporary, and may
/// crash.
template <std::size_t I, class T>
  requires std::is_empty_v<T>
struct tuple_slot<I, T> {
  [[no_unique_address]] T value{};
};

template <class Numbers, class... Ts>
struct tuple_slots;
template <std::size_t... Is, class... Ts>
struct tuple_slots<std::index_sequence<Is...>, Ts...> : tuple_slot<Is, Ts>... {
  template <class F>
  constexpr decltype(auto) apply(F&& f) const {
    return f(static_cast<const tuple_slot<Is, Ts>&>(*this).value...);
  }
  template <class F>
  constexpr decltype(auto) apply(F&& f) {
    return f(static_cast<tuple_slot<Is, Ts>&>(*this).value...);
  }
};

}  // namespace detail

/// Values of different types, side by side. An aggregate, because a std::tuple costs compilation a dozen
/// functions for each type in it, and as many again each time a stage is appended.
template <class... Ts>
struct light_tuple : detail::tuple_slots<std::index_sequence_for<Ts...>, Ts...> {
  static constexpr std::size_t size = sizeof...(Ts);
};

namespace detail {

template <std::size_t I, class T>
[[nodiscard]] constexpr T& at(tuple_slot<I, T>& slot) noexcept {
  return slot.value;
}
template <std::size_t I, class T>
[[nodiscard]] constexpr const T& at(const tuple_slot<I, T>& slot) noexcept {
  return slot.value;
}

template <std::size_t I, class T>
std::type_identity<T> type_in_slot(const tuple_slot<I, T>&);
template <std::size_t I, class Pack>
using type_at = typename decltype(type_in_slot<I>(std::declval<const Pack&>()))::type;

template <class... Ts>
[[nodiscard]] constexpr light_tuple<std::remove_cvref_t<Ts>...> make_light_tuple(Ts&&... values) {
  return [&]<std::size_t... Is>(std::index_sequence<Is...>) {
    return light_tuple<std::remove_cvref_t<Ts>...>{
        {tuple_slot<Is, std::remove_cvref_t<Ts>>{std::forward<Ts>(values)}...}};
  }(std::index_sequence_for<Ts...>{});
}

template <class... As, class... Bs>
[[nodiscard]] constexpr light_tuple<As..., Bs...> join(light_tuple<As...>&& a, light_tuple<Bs...>&& b) {
  return [&]<std::size_t... I, std::size_t... J>(std::index_sequence<I...>, std::index_sequence<J...>) {
    return light_tuple<As..., Bs...>{
        {tuple_slot<I, As>{std::move(static_cast<tuple_slot<I, As>&>(a).value)}...,
         tuple_slot<sizeof...(As) + J, Bs>{std::move(static_cast<tuple_slot<J, Bs>&>(b).value)}...}};
  }(std::index_sequence_for<As...>{}, std::index_sequence_for<Bs...>{});
}
template <class... As, class... Bs>
[[nodiscard]] constexpr light_tuple<As..., Bs...> join(const light_tuple<As...>& a, light_tuple<Bs...>&& b) {
  return join(light_tuple<As...>(a), std::move(b));
}

}  // namespace detail

}  // namespace penstock::inline v0_1
