// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/element.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/mistake.hpp>
#include <penstock/core/open_sample.hpp>
#include <penstock/core/random.hpp>
#include <penstock/core/record.hpp>
#include <penstock/core/token_value.hpp>

#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

/// What the operations on tokens share: how they find a sequence in a sample, and where they write.
namespace penstock::inline v0_1 {

namespace mistakes {

struct no_token_sequence : about_element {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: this operation works on a sequence of tokens, which are whole numbers (a span, a vector, "
        "an array of one dimension), and gets something else; name the field that has them, as in "
        "mask_tokens<\"tokens\">(...), or make tokens of a text before it");
  }
};
struct added_field_is_there : about_element {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: this operation adds a field of a name that the sample has already; give it another one, "
        "as in mask_tokens<\"tokens\", \"targets\">(...)");
  }
};

}  // namespace mistakes

namespace detail {

/// The numbers of a finished sequence.
template <class V>
  requires requires(const V& v) { std::span(v.values()); }
[[nodiscard]] constexpr auto token_span(const V& v) noexcept {
  using number = typename decltype(std::span(v.values()))::value_type;
  return std::span<const number>(v.values());
}
template <class V>
  requires(
      !requires(const V& v) { std::span(v.values()); } &&
      requires(const V& v) { std::span(v.data(), v.size()); })
[[nodiscard]] constexpr auto token_span(const V& v) noexcept {
  return std::span<const std::remove_cvref_t<decltype(*v.data())>>(v.data(), v.size());
}

template <class V>
using sequence_token =
    typename decltype(token_span(std::declval<const std::remove_cvref_t<finished<V>>&>()))::value_type;

}  // namespace detail

/// A sequence of tokens, or something that is one when it is finished: spans, vectors, tensors and array
/// expressions of whole numbers. That a tensor has one dimension is found when it is there.
template <class V>
concept token_sequence =
    requires { typename detail::sequence_token<V>; } && token_value<detail::sequence_token<V>>;

namespace detail {

[[noreturn, gnu::cold]] inline void refuse_sequence(std::string_view operation, const extents& shape) {
  throw error(errc::shape, {operation, " works on sequences, and this array has the shape ", to_string(shape),
                            "; take it apart with unbatch before"});
}
[[noreturn, gnu::cold]] inline void refuse_token(std::string_view operation, std::string_view option,
                                                 std::int64_t token, std::size_t bits) {
  throw error(errc::argument, {operation, ": .", option, " = ", token, " does not fit into tokens of ", bits,
                               " bits; use wider ones"});
}

/// The numbers of a sequence, which is finished.
template <class V>
[[nodiscard]] auto sequence_numbers(std::string_view operation, const V& sequence) {
  if constexpr (requires { sequence.shape().rank(); }) {
    if (sequence.shape().rank() != 1) [[unlikely]]
      refuse_sequence(operation, sequence.shape());
  }
  return token_span(sequence);
}

/// A token of an option as a number of the sequence.
template <class T>
[[nodiscard]] constexpr T token_as(std::int64_t token, std::string_view operation, std::string_view option) {
  if (!std::in_range<T>(token)) [[unlikely]]
    refuse_token(operation, option, token, sizeof(T) * 8);
  return static_cast<T>(token);
}

/// Room for this many numbers in memory of the worker, of any content. It grows by halves, so that it soon
/// has its last size.
template <class T>
[[nodiscard]] std::span<T> token_room(buffer& memory, std::size_t count) {
  const std::size_t bytes = count * sizeof(T);
  if (bytes > memory.capacity()) memory.resize_for_overwrite(bytes + bytes / 2);
  memory.resize_for_overwrite(bytes);
  return {reinterpret_cast<T*>(memory.data()), count};
}

/// Random words by their number: those that SplitMix64 gives from a state that is drawn.
class numbered_words {
 public:
  explicit constexpr numbered_words(rng& random) noexcept : first_(random()) {}
  [[nodiscard]] constexpr std::uint64_t operator[](std::uint64_t i) const noexcept {
    return mix64(first_ + i * 0x9e3779b97f4a7c15u);
  }

 private:
  std::uint64_t first_;
};

/// A probability as a share of the 2^32 values of half a random word.
[[nodiscard]] constexpr std::uint64_t share_of_words(double p) noexcept {
  return static_cast<std::uint64_t>(p * 0x1p32 + 0.5);
}
[[nodiscard]] constexpr bool is_probability(double p) noexcept { return p >= 0 && p <= 1; }

template <class R, class Name, class First, class... More>
struct record_with;
template <class... Fields, class Name, class First, class... More>
struct record_with<record<Fields...>, Name, First, More...>
    : std::type_identity<
          record<std::conditional_t<
                     std::is_same_v<typename Fields::name_type, Name>, First,
                     basic_field<typename Fields::name_type, std::remove_cvref_t<typename Fields::type>>>...,
                 More...>> {};

/// The sample with the field `First` in the place of `Name`, and `More` behind all others. Of a sequence
/// alone it is these fields.
template <class Name, class First, class... More, class V>
[[nodiscard]] constexpr auto with_fields(V&& sample, typename First::type first,
                                         typename More::type... more) {
  using type = std::remove_cvref_t<V>;
  if constexpr (any_record<type>) {
    return [&]<std::size_t... Is>(std::index_sequence<Is...>) {
      const auto value = [&]<std::size_t I>(std::integral_constant<std::size_t, I>) -> decltype(auto) {
        if constexpr (I == type::template index_of<Name>)
          return (first);
        else
          return get<I>(std::forward<V>(sample));
      };
      return typename record_with<type, Name, First, More...>::type(
          value(std::integral_constant<std::size_t, Is>{})..., more...);
    }(std::make_index_sequence<type::size>{});
  } else {
    return record<First, More...>(first, more...);
  }
}

/// The sequence of a sample: its field `Name`, or all of it if it has no fields.
template <class Name, class V>
[[nodiscard]] constexpr const auto& sequence_in(const V& sample) noexcept {
  if constexpr (any_record<V>)
    return get<V::template index_of<Name>>(sample);
  else
    return sample;
}

/// What is wrong with the field `Name` of a sample, or with the sample, as a sequence that gets fields of the
/// names `Added`, of which the first may stand in its place.
template <class V, class Name, class... Added>
consteval auto sequence_mistake() {
  if constexpr (any_record<V>) {
    if constexpr (!has_field<V, Name>)
      return missing_field_in<V>{};
    else if constexpr (!token_sequence<std::tuple_element_t<V::template index_of<Name>, V>>)
      return mistakes::no_token_sequence{};
    else if constexpr (((has_field<V, Added> && !std::is_same_v<Added, Name>) || ...))
      return mistakes::added_field_is_there{};
    else
      return mistakes::none{};
  } else if constexpr (open_sample<V> || owned_sample<V>) {
    return missing_field_in<V>{};
  } else if constexpr (!token_sequence<V>) {
    return mistakes::no_token_sequence{};
  } else {
    return mistakes::none{};
  }
}

}  // namespace detail

}  // namespace penstock::inline v0_1
