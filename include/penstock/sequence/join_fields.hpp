// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/call.hpp>
#include <penstock/sequence/token_sequence.hpp>

#include <array>
#include <cstring>
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

/// A part of a joined sequence: a value that is about to go is moved here, another one is referred to.
template <class V>
class joined_part {
 public:
  explicit constexpr joined_part(V&& value) : value_(keep(std::forward<V>(value))) {}

  [[nodiscard]] std::uint64_t size() const {
    if constexpr (requires { value().shape().rank(); }) {
      if (value().shape().rank() != 1) [[unlikely]]
        refuse_sequence("join_fields", value().shape());
      return value().shape()[0];
    } else {
      return numbers_of(value()).size();
    }
  }
  template <class T>
  void write_to(const destination<T>& into) const {
    if constexpr (array_expression<type>)
      write_array(value(), into);
    else
      into.copy_from(numbers_of(value()));
  }

 private:
  using type = std::remove_cvref_t<V>;
  static constexpr bool refers = std::is_lvalue_reference_v<V>;

  static constexpr decltype(auto) keep(V&& value) {
    if constexpr (refers)
      return &value;
    else
      return std::move(value);
  }
  [[nodiscard]] const type& value() const {
    if constexpr (refers)
      return *value_;
    else
      return value_;
  }

  std::conditional_t<refers, const type*, type> value_;
};

}  // namespace detail

/// Sequences one behind the other, as an array that is not computed yet: each writes itself to its part of the
/// destination, so that nothing is copied on the way. Made by `join_fields`.
template <class T, class... Parts>
class joined_sequence {
 public:
  using unfinished = void;
  using value_type = T;

  /// `memory` is where the array is written if it is finished before it has a place.
  joined_sequence(std::span<const T> begin, std::span<const T> end, buffer& memory, Parts... parts)
      : begin_(begin), end_(end), memory_(&memory), parts_(std::move(parts)...) {
    length_ = begin_.size() + end_.size();
    std::apply([this](const auto&... part) { ((length_ += part.size()), ...); }, parts_);
  }

  [[nodiscard]] extents shape() const noexcept { return extents(length_); }
  void write_to(const destination<T>& into) const {
    std::uint64_t at = 0;
    const auto next = [&](std::uint64_t size) {
      const auto first = static_cast<std::int64_t>(std::exchange(at, at + size));
      return destination<T>(into.data() + first * into.strides()[0], extents(size), into.strides(),
                            into.space());
    };
    next(begin_.size()).copy_from(begin_);
    std::apply([&](const auto&... part) { (part.write_to(next(part.size())), ...); }, parts_);
    next(end_.size()).copy_from(end_);
  }
  /// Valid until the worker's next sample.
  [[nodiscard]] tensor_view<const T> finish() const {
    const std::span<T> room = detail::room_for<T>(*memory_, detail::to_size(length_));
    write_to(destination<T>(room.data(), shape()));
    return {room.data(), shape()};
  }

 private:
  std::span<const T> begin_, end_;
  buffer* memory_;
  std::uint64_t length_;
  std::tuple<Parts...> parts_;
};

/// A mask of a joined sequence: a number of equal values, and the next. Made by `join_fields`.
template <std::size_t Runs>
class joined_mask {
 public:
  using unfinished = void;
  using value_type = std::uint8_t;
  struct run {
    std::uint64_t length;
    std::uint8_t value;
  };

  joined_mask(const std::array<run, Runs>& runs, buffer& memory) : runs_(runs), memory_(&memory) {
    for (const run& each : runs_) length_ += each.length;
  }

  [[nodiscard]] extents shape() const noexcept { return extents(length_); }
  void write_to(const destination<std::uint8_t>& into) const {
    if (into.dense()) {
      std::uint8_t* out = into.data();
      for (const run& each : runs_) {
        if (each.length != 0) std::memset(out, each.value, detail::to_size(each.length));
        out += each.length;
      }
    } else {
      std::size_t i = 0;
      std::uint64_t left = runs_[0].length;
      into.fill_from([&] {
        while (left == 0) left = runs_[++i].length;
        --left;
        return runs_[i].value;
      });
    }
  }
  /// Valid until the worker's next sample.
  [[nodiscard]] tensor_view<const std::uint8_t> finish() const {
    const auto room = detail::room_for<std::uint8_t>(*memory_, detail::to_size(length_));
    write_to(destination<std::uint8_t>(room.data(), shape()));
    return {room.data(), shape()};
  }

 private:
  std::array<run, Runs> runs_;
  buffer* memory_;
  std::uint64_t length_ = 0;
};

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
  template <class R, class Name>
  using value_of = std::tuple_element_t<std::remove_cvref_t<R>::template index_of<Name>,
                                        std::remove_cvref_t<R>>;
  using first_name = std::tuple_element_t<0, std::tuple<Names...>>;
  template <class R, class Name>
  using part_of =
      detail::joined_part<decltype(get<std::remove_cvref_t<R>::template index_of<Name>>(std::declval<R>()))>;

  template <class V>
  static consteval auto mistake_of() {
    if constexpr (!(has_field<V, Names> && ...)) {
      return detail::missing_field_in<V>{};
    } else if constexpr (!detail::names_differ<basic_field<Names, int>...>()) {
      return mistakes::joined_twice{};
    } else if constexpr (!(token_sequence<value_of<V, Names>> && ...)) {
      return mistakes::no_token_sequence{};
    } else if constexpr (!(std::is_same_v<detail::number_of<value_of<V, first_name>>,
                                          detail::number_of<value_of<V, Names>>> &&
                           ...)) {
      return mistakes::joined_types_differ{};
    } else if constexpr ((has_field<V, Into> && !is_part<Into>) ||
                         (has_field<V, mask_name> && !is_part<mask_name>)) {
      return mistakes::added_field_is_there{};
    } else {
      return mistakes::none{};
    }
  }

 public:
  using accepts_call = void;
  struct scratch {
    buffer tokens, mask, begin, end;
  };
  template <class V>
  using wrong_argument_for = decltype(mistake_of<std::remove_cvref_t<V>>());

  explicit constexpr join_fields_operation(const join_fields_options& options) : options_(options) {}

  template <class V>
    requires(detail::is_right<wrong_argument_for<V>>)
  [[nodiscard]] auto operator()(V&& sample, const call<scratch>& c) const {
    using type = std::remove_cvref_t<V>;
    using T = detail::number_of<value_of<V, first_name>>;
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
    const std::span<T> room = detail::room_for<T>(memory, 1);
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
      : with_more<decltype(std::tuple_cat(
                      std::declval<unless_part<typename R::template field_at<Is>>>()...)),
                  basic_field<Into, Joined>,
                  basic_field<mask_name, joined_mask<sizeof...(Names) + 2>>> {};

  join_fields_options options_;
};

/// Puts fields of a sample one behind the other as one document, and tells which tokens a model is trained on:
/// a prompt and an answer for instruction tuning. Field "loss_mask" is 1 at the tokens of the fields in
/// `train_on<...>`, by default the last one, and 0 at the others.
///
/// In: a record whose named fields are sequences of tokens of one type. Out: the other fields, and behind them
/// the tokens under the first name, and "loss_mask", of `std::uint8_t`. Both are array expressions: the parts
/// are copied once, to the slot, and parts that are not computed yet write themselves there. The length is the
/// sum of the parts, and one more for each of `begin_token` and `end_token`.
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
