// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/message.hpp>
#include <penstock/core/open_sample.hpp>
#include <penstock/core/pipe.hpp>
#include <penstock/stage/function_chain.hpp>

namespace penstock::inline v0_1 {

namespace mistakes {

struct fields_in_a_field : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: this function makes several fields and takes the whole sample; write "
                  "map(mask_tokens<\"tokens\">(...)), and not map<\"tokens\">(mask_tokens(...))");
  }
};

}  // namespace mistakes

/// Replaces each sample with the result of a function. Made by `map(f)`.
///
/// In: any element; unfinished ones are finished first, unless `F` has a member alias `accepts_unfinished`.
/// Out: f's result; a view it returns must outlive the call (no pointers into locals). Pointwise; keeps all
/// five guarantees.
/// `f(sample)` or `f(sample, rng&)` must be callable when const: one object serves all workers at once; a
/// pointer to a member will do, `map(&point::x)`. The
/// generator is keyed by the sample's position and this stage's number among the random stages, or by
/// `key("...")`.
/// A function with memory has a member alias `accepts_call` and a type `scratch`; each worker has its own.
/// The call is `f(value, const call<scratch>&)`, and values are not finished first.
/// Cost: the call, inlined. Throws what f throws, at the sample's place in the sequence.
///
///     auto squares = from({1, 2, 3}) | map([](int x) { return x * x; });
///     struct reverse {
///       using accepts_call = void;
///       struct scratch { std::string text; };
///       std::string_view operator()(std::string_view word, const call<scratch>& c) const {
///         c.scratch.text.assign(word.rbegin(), word.rend());
///         return c.scratch.text;
///       }
///     };
template <class F>
struct map_stage {
  using penstock_part = pointwise_tag;
  static constexpr std::string_view stage_name = "map";
  using scratch = detail::function_scratch<F>;
  [[no_unique_address]] F function;
  key address;

  using penstock_function = F;
  template <class V, class... More>
  using called_with = decltype(std::declval<const detail::called_function<F>&>()(
      std::declval<detail::argument_of<F, V>>(), std::declval<More>()...));
  template <class V, class... More>
  using must_be_called_with =
      decltype(std::declval<const F&>()(std::declval<detail::argument_of<F, V>>(), std::declval<More>()...));
  template <class V>
  static constexpr bool uses_random = detail::function_uses_random<F, V>;
  /// The number of streams of random numbers; above 1 in `map(f, g, ...)`.
  template <class V>
  static constexpr std::uint64_t streams = detail::streams_of<F, V>();
  [[nodiscard]] constexpr std::uint64_t stream_address() const noexcept { return address.hash; }

  template <class V, class Call>
  constexpr decltype(auto) apply(V&& value, const Call& c) const {
    return detail::call_function(function, std::forward<V>(value), c);
  }
  template <class Context>
  static consteval auto diagnose() {
    return detail::diagnose_function<F, typename Context::element>();
  }
};

namespace detail {

template <class R, class... Ts>
constexpr auto record_like(Ts&&... values) {
  return [&]<std::size_t... Is>(std::index_sequence<Is...>) {
    return record<basic_field<typename R::template field_at<Is>::name_type, std::remove_cvref_t<Ts>>...>(
        std::forward<Ts>(values)...);
  }(std::index_sequence_for<Ts...>{});
}

}  // namespace detail

/// Replaces one field of each record with the result of a function. Made by `map<"name">(f)`.
///
/// In: a record with that field. Out: the same record with the field's new type. Other fields pass untouched
/// and unread. Otherwise like `map`.
template <class Name, class F>
struct map_field_stage {
  using penstock_part = pointwise_tag;
  static constexpr std::string_view stage_name = "map";
  using scratch = detail::function_scratch<F>;
  [[no_unique_address]] F function;
  key address;

  template <class R>
  using argument =
      std::tuple_element_t<std::remove_cvref_t<R>::template index_of<Name>, std::remove_cvref_t<R>>;
  template <class R>
  static constexpr bool uses_random = detail::function_uses_random<F, argument<R>>;
  template <class R>
  static constexpr std::uint64_t streams = detail::streams_of<F, argument<R>>();
  [[nodiscard]] constexpr std::uint64_t stream_address() const noexcept { return address.hash; }

  template <any_record R, class Call>
  constexpr auto apply(R&& sample, const Call& c) const {
    return [&]<std::size_t... Is>(std::index_sequence<Is...>) {
      return detail::record_like<std::remove_cvref_t<R>>(detail_field<R, Is>(std::forward<R>(sample), c)...);
    }(std::make_index_sequence<std::remove_cvref_t<R>::size>{});
  }
  [[nodiscard]] std::string describe() const { return detail::text({"map<\"", Name::value, "\">"}); }

  template <class Context>
  static consteval auto diagnose() {
    using element = std::remove_cvref_t<typename Context::element>;
    if constexpr (!has_field<element, Name>)
      return detail::missing_field_in<element>{};
    else if constexpr (detail::makes_fields<F>)
      return mistakes::fields_in_a_field{};
    else
      return detail::diagnose_function<F, std::tuple_element_t<element::template index_of<Name>, element>>();
  }

 private:
  template <class R, std::size_t I, class Call>
  constexpr decltype(auto) detail_field(R&& sample, const Call& c) const {
    if constexpr (I == std::remove_cvref_t<R>::template index_of<Name>)
      return detail::call_function(function, get<I>(std::forward<R>(sample)), c);
    else
      return get<I>(std::forward<R>(sample));
  }
};

namespace detail {

/// What an overload set converts to, if one of its functions takes a number. Single functions are deduced.
struct several_functions {
  constexpr several_functions(double (*)(double)) {}  // NOLINT(google-explicit-constructor)
};

template <class... Fs>
inline constexpr bool ends_with_key =
    std::is_same_v<std::tuple_element_t<sizeof...(Fs) - 1, std::tuple<Fs...>>, key>;

/// Calls make(tuple, key) with a tuple of `functions`, the last of which may be a `key`.
template <class Make, class... Fs>
[[nodiscard]] constexpr auto with_functions(const Make& make, Fs... functions) {
  constexpr bool keyed = ends_with_key<Fs...>;
  std::tuple<Fs...> all(std::move(functions)...);
  return [&]<std::size_t... Is>(std::index_sequence<Is...>) {
    std::tuple<std::tuple_element_t<Is, std::tuple<Fs...>>...> called(std::get<Is>(std::move(all))...);
    if constexpr (keyed)
      return make(std::move(called), std::get<sizeof...(Fs) - 1>(all));
    else
      return make(std::move(called), key{});
  }(std::make_index_sequence<sizeof...(Fs) - (keyed ? 1 : 0)>{});
}
template <class Make, class... Fs>
[[nodiscard]] constexpr auto with_chain(const Make& make, Fs... functions) {
  return with_functions(
      [&]<class... Called>(std::tuple<Called...> called, key address) {
        return std::apply(
            [&](Called&... each) { return make(function_chain<Called...>(std::move(each)...), address); },
            called);
      },
      std::move(functions)...);
}

}  // namespace detail

template <class F>
[[nodiscard]] constexpr auto map(F function, key address = {}) {
  return map_stage<F>{std::move(function), address};
}
/// A mistake: the name of several functions, such as `std::sqrt`.
template <class... None>
[[nodiscard]] constexpr ill_formed map(detail::several_functions) {
  static_assert(never<light_tuple<None...>>,
                "penstock: map is given the name of several functions, and cannot tell which is meant; write "
                "map([](double x) { return std::sqrt(x); }), with your function");
  return {};
}
template <fixed_string Name, class F>
[[nodiscard]] constexpr auto map(F function, key address = {}) {
  return map_field_stage<name_of<Name>, F>{std::move(function), address};
}

/// `map(f, g, ...)` is `map(f) | map(g) | ...` in one stage: each function gets the result of the one before
/// it, which goes when the last one has returned. So the last one must not return a view of it. A `key` may
/// stand at the end: the first function that draws then draws as `map(f, key)` does, and each other one has
/// numbers that depend on how many draw before it.
template <class F, class G, class... Rest>
  requires(!std::is_same_v<G, key>)
[[nodiscard]] constexpr auto map(F first, G second, Rest... rest) {
  return detail::with_chain(
      []<class Chain>(Chain chain, key address) {
        return map_stage<Chain>{std::move(chain), address};
      },
      std::move(first), std::move(second), std::move(rest)...);
}
template <fixed_string Name, class F, class G, class... Rest>
  requires(!std::is_same_v<G, key>)
[[nodiscard]] constexpr auto map(F first, G second, Rest... rest) {
  return detail::with_chain(
      []<class Chain>(Chain chain, key address) {
        return map_field_stage<name_of<Name>, Chain>{std::move(chain), address};
      },
      std::move(first), std::move(second), std::move(rest)...);
}

}  // namespace penstock::inline v0_1
