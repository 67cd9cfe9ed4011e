// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/call.hpp>
#include <penstock/sequence/joined_sequence.hpp>
#include <penstock/sequence/token_sequence.hpp>

#include <array>
#include <tuple>

namespace penstock::inline v0_1 {

namespace mistakes {

struct joined_types_differ : about_element {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: the fields that join_fields joins hold tokens of different types; write "
                  "map<\"prompt\">(f) before it, so that all have one");
  }
};
struct joined_twice : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: join_fields names a field twice; name each part once, and use join_turns for "
                  "what repeats");
  }
};

}  // namespace mistakes

namespace detail {

/// Says which fields a model is trained on.
template <class... Names>
struct trained_names {};

template <class R, class Name>
using field_value = std::tuple_element_t<R::template index_of<Name>, R>;

template <class V, class Into, class Mask, class First, class... More>
consteval auto join_fields_mistake() {
  constexpr auto is_there = []<class Name>(Name*) {
    return has_field<V, Name> && !(std::is_same_v<Name, First> || ... || std::is_same_v<Name, More>);
  };
  if constexpr (!(has_field<V, First> && ... && has_field<V, More>))
    return missing_field_in<V>{};
  else if constexpr (!names_differ<basic_field<First, int>, basic_field<More, int>...>())
    return mistakes::joined_twice{};
  else if constexpr (!(token_sequence<field_value<V, First>> && ... && token_sequence<field_value<V, More>>))
    return mistakes::no_token_sequence{};
  else if constexpr (!(std::is_same_v<sequence_token<field_value<V, First>>,
                                      sequence_token<field_value<V, More>>> &&
                       ...))
    return mistakes::joined_types_differ{};
  else if constexpr (is_there(static_cast<Into*>(nullptr)) || is_there(static_cast<Mask*>(nullptr)))
    return mistakes::added_field_is_there{};
  else
    return mistakes::none{};
}

}  // namespace detail

/// Options of `join_fields`.
struct join_fields_options {
  std::int64_t begin_token = -1;  ///< before the first part, not trained on; -1: none
  std::int64_t end_token = -1;    ///< behind the last part, trained on if that is; -1: none
};

/// An argument of `join_fields`: the fields whose tokens a model learns to write.
template <fixed_string... Names>
inline constexpr detail::trained_names<name_of<Names>...> train_on{};

/// What `join_fields` makes: a function for `map`.
template <class Into, class Trained, class... Names>
class join_fields_operation;

template <class Into, class... Trained, class... Names>
class join_fields_operation<Into, detail::trained_names<Trained...>, Names...> {
  using mask_name = name_of<"loss_mask">;
  template <class Name>
  static constexpr bool is_part = (std::is_same_v<Name, Names> || ...);
  template <class R>
  using token_of = detail::sequence_token<
      detail::field_value<std::remove_cvref_t<R>, std::tuple_element_t<0, std::tuple<Names...>>>>;
  template <class R, class Name>
  using part_of =
      detail::joined_part<decltype(get<std::remove_cvref_t<R>::template index_of<Name>>(std::declval<R>()))>;

 public:
  using accepts_call = void;
  using makes_fields = void;
  struct scratch {
    buffer tokens, mask, begin, end;
  };
  template <class V>
  using wrong_argument_for =
      decltype(detail::join_fields_mistake<std::remove_cvref_t<V>, Into, mask_name, Names...>());

  explicit constexpr join_fields_operation(const join_fields_options& options) : options_(options) {}

  template <class V>
    requires(detail::is_right<wrong_argument_for<V>>)
  [[nodiscard]] auto operator()(V&& sample, const call<scratch>& c) const {
    using type = std::remove_cvref_t<V>;
    using T = token_of<V>;
    using run = typename joined_mask<sizeof...(Names) + 2>::run;
    using tokens_type = joined_sequence<T, part_of<V, Names>...>;
    const auto begin = one_token<T>(options_.begin_token, "begin_token", c.scratch.begin);
    const auto end = one_token<T>(options_.end_token, "end_token", c.scratch.end);

    std::tuple<part_of<V, Names>...> parts(
        part_of<V, Names>(get<type::template index_of<Names>>(std::forward<V>(sample)))...);
    std::array<run, sizeof...(Names) + 2> runs{run{begin.size(), 0}};
    std::apply(
        [&](const auto&... part) {
          std::size_t i = 1;
          ((runs[i++] = {part.size(), is_trained<Names>}), ...);
          runs[i] = {end.size(), runs[i - 1].value};
        },
        parts);
    const joined_mask<sizeof...(Names) + 2> mask(runs, c.scratch.mask);
    auto tokens = std::apply(
        [&](auto&... part) { return tokens_type(begin, end, c.scratch.tokens, std::move(part)...); }, parts);
    return [&]<std::size_t... Is>(std::index_sequence<Is...>) {
      using others = decltype(std::tuple_cat(rest_of<Is, V>(std::forward<V>(sample))...));
      return std::apply(
          [&]<class... Rest>(Rest&&... rest) {
            return typename joined_record<type, tokens_type, std::index_sequence<Is...>>::type(
                std::forward<Rest>(rest)..., std::move(tokens), mask);
          },
          others(std::tuple_cat(rest_of<Is, V>(std::forward<V>(sample))...)));
    }(std::make_index_sequence<type::size>{});
  }

 private:
  template <class Name>
  static constexpr std::uint8_t is_trained = (std::is_same_v<Name, Trained> || ...) ? 1 : 0;
  static_assert((is_part<Trained> && ...),
                "penstock: train_on<...> names a field that join_fields does not join; write a part's name");

  template <class T>
  static std::span<const T> one_token(std::int64_t token, std::string_view option, buffer& memory) {
    if (token < 0) return {};
    const std::span<T> room = detail::token_room<T>(memory, 1);
    room[0] = detail::token_as<T>(token, "join_fields", option);
    return room;
  }
  /// The field `I` as a tuple of a reference, unless it is a part.
  template <std::size_t I, class V>
  static constexpr auto rest_of(V&& sample) {
    if constexpr (is_part<typename std::remove_cvref_t<V>::template field_at<I>::name_type>)
      return std::tuple<>();
    else
      return std::forward_as_tuple(get<I>(std::forward<V>(sample)));
  }
  template <class Fields, class... More>
  struct with_more;
  template <class... Fields, class... More>
  struct with_more<std::tuple<Fields...>, More...> : std::type_identity<record<Fields..., More...>> {};
  template <class Field>
  using unless_part = std::conditional_t<
      is_part<typename Field::name_type>, std::tuple<>,
      std::tuple<basic_field<typename Field::name_type, std::remove_cvref_t<typename Field::type>>>>;
  template <class R, class Joined, class Is>
  struct joined_record;
  template <class R, class Joined, std::size_t... Is>
  struct joined_record<R, Joined, std::index_sequence<Is...>>
      : with_more<decltype(std::tuple_cat(std::declval<unless_part<typename R::template field_at<Is>>>()...)),
                  basic_field<Into, Joined>, basic_field<mask_name, joined_mask<sizeof...(Names) + 2>>> {};

  join_fields_options options_;
};

/// Puts fields of a sample one behind the other as one document, such as a prompt and an answer, and tells
/// which tokens a model is trained on. Field "loss_mask" is 1 at the tokens of the fields in `train_on<...>`,
/// by default the last one, and 0 at the others.
///
/// In: a record whose named fields are sequences of tokens of one type. Out: the other fields, and behind
/// them the tokens under the first name, and "loss_mask", of `std::uint8_t`. Both are array expressions: the
/// parts are copied once, to the slot, and parts that are not computed yet write themselves there. The length
/// is the sum of the parts, and one more for each of `begin_token` and `end_token`.
///
/// Pointwise; keeps all five guarantees. No allocation, unless a function behind it asks for finished values;
/// then none once the memory has grown. Cost: none but the copy to the slot.
/// Throws `errc::argument` for tokens that the sequence's type cannot hold; `errc::shape`, for a sample, if a
/// part has several dimensions. A part named twice, and one in `train_on` that is not joined, do not compile.
///
///     auto chat = map(join_fields<"tokens", "prompt", "answer">({.end_token = 2}));
///     auto both = map(join_fields<"tokens", "question", "reason", "answer">(train_on<"reason", "answer">));
template <fixed_string Into, fixed_string First, fixed_string... More>
[[nodiscard]] constexpr auto join_fields(const join_fields_options& options = {}) {
  using last = std::tuple_element_t<sizeof...(More), std::tuple<name_of<First>, name_of<More>...>>;
  return join_fields_operation<name_of<Into>, detail::trained_names<last>, name_of<First>, name_of<More>...>(
      options);
}
template <fixed_string Into, fixed_string First, fixed_string... More, class... Trained>
[[nodiscard]] constexpr auto join_fields(detail::trained_names<Trained...>,
                                         const join_fields_options& options = {}) {
  return join_fields_operation<name_of<Into>, detail::trained_names<Trained...>, name_of<First>,
                               name_of<More>...>(options);
}

}  // namespace penstock::inline v0_1
