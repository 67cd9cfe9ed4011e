// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/mapped_field.hpp>
#include <penstock/core/pack.hpp>
#include <penstock/core/pipe.hpp>
#include <penstock/stage/function_chain.hpp>
#include <penstock/stage/functions.hpp>
#include <penstock/stage/map.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace penstock::inline v0_1 {

namespace mistakes {

struct places_unknown {
  using penstock_mistake = about_expression_tag;
  template <class Reached>
  static consteval void explain() {
    static_assert(
        never<Reached>,
        "penstock: a map of an image and its masks, boxes or points has a function that does not say "
        "what becomes of places in the image; write it in a map<\"jpg\">(f) of its own, or give it "
        "`using keeps_places = void;` if it moves no pixel");
  }
};
struct places_without_image {
  using penstock_mistake = about_element_tag;
  template <class Reached>
  static consteval void explain() {
    static_assert(
        never<Reached>,
        "penstock: the first field of a map with masks, boxes or points is their image, and this one "
        "is none; write map<\"jpg\", as_mask<\"png\">, as_boxes<\"boxes\">>(...) after decode");
  }
};

}  // namespace mistakes

namespace detail {

/// Whether a role follows functions without calling them.
template <class Role>
concept follows = requires { typename Role::scratch; };
template <class F>
concept moves_places = requires { typename F::moves_places; };
template <class F>
concept knows_places = moves_places<F> || requires { typename F::keeps_places; };
template <class V>
concept sized_image = requires { typename std::remove_cvref_t<V>::is_lazy_image; };

template <class V, class F, class... Rest>
constexpr void count_streams(std::uint64_t* of_each) {
  using check = chain_check<V, F, Rest...>;
  *of_each = streams_of<F, V>();
  if constexpr (sizeof...(Rest) != 0 && !check::stops)
    count_streams<typename check::here::result, Rest...>(of_each + 1);
}
/// The streams of random numbers that each function needs, for the first field.
template <class First, class... Fs>
inline constexpr auto joint_streams = [] {
  std::array<std::uint64_t, sizeof...(Fs)> of_each{};
  count_streams<First, Fs...>(of_each.data());
  return of_each;
}();

/// A function for one field of several; it counts as drawing what it draws for the first field. `F` is a
/// reference to a function of the stage, or a function.
template <class F, std::uint64_t Streams>
struct joint_function {
  using function = std::remove_cvref_t<F>;
  using accepts_call = void;
  using scratch = function_scratch<function>;
  template <class>
  static constexpr std::uint64_t streams = Streams;
  template <class>
  static constexpr bool draws = Streams != 0;
  template <class V>
  using wrong_argument_for = typename function_check<function, V>::wrong;

  F called;

  template <class V>
    requires(is_right<wrong_argument_for<V>>)
  constexpr decltype(auto) operator()(V&& value, const call<scratch>& c) const {
    return call_function(static_cast<const function&>(called), std::forward<V>(value), c);
  }
};

template <class Role, class... Fs>
struct scratch_of_role {
  using type = std::tuple<
      function_scratch<std::remove_cvref_t<decltype(Role::function(std::declval<const Fs&>()))>>...>;
};
template <follows Role, class... Fs>
struct scratch_of_role<Role, Fs...> {
  using type = typename Role::scratch;
};

[[noreturn, gnu::cold]] inline void refuse_sizes(std::string_view first, std::string_view other,
                                                 std::uint64_t width, std::uint64_t height,
                                                 std::uint64_t other_width, std::uint64_t other_height) {
  throw error(errc::shape, {"fields of one map are images of one size, and '", first, "' is ", width, " x ",
                            height, ", '", other, "' ", other_width, " x ", other_height});
}

}  // namespace detail

/// Replaces several fields of each record with what functions make of them, with the same random numbers for
/// all. Made by `map<"a", "b", ...>(f, g, ..., key)`. `Fields` is a pack of names with roles.
///
/// In: a record with these fields. Out: the same record with the fields' new types; others pass untouched.
/// Each field is changed as by a `map<"name">(f, g, ...)` of its own, with scratch of its own; but in every
/// field a function has the random numbers that it has in the first one. Fields beside an image are
/// `as_mask<"name">`, `as_boxes<"name">` and `as_points<"name">`: the first field is then the image, and
/// every function says what becomes of places in it, as all image operations but `trivial_augment` and
/// `rand_augment` do. Pointwise; keeps all five guarantees.
///
/// Images whose geometry changes have one size: another one is `errc::shape`, for the sample.
///
///     auto both = map<"left", "right">([](std::int64_t x, rng& random) { return x + random.uniform(); });
template <class Fields, class... Fs>
struct map_fields_stage;

template <class... Fields, class... Fs>
struct map_fields_stage<pack<Fields...>, Fs...> {
  using penstock_part = pointwise_tag;
  static constexpr std::string_view stage_name = "map";
  using scratch = std::tuple<typename detail::scratch_of_role<typename Fields::role, Fs...>::type...>;
  [[no_unique_address]] std::tuple<Fs...> functions;
  key address;

 private:
  template <std::size_t I>
  using field_at = std::tuple_element_t<I, std::tuple<Fields...>>;
  template <class R>
  static constexpr std::size_t first_index = R::template index_of<typename field_at<0>::name_type>;
  template <class R>
  using first_of = std::tuple_element_t<first_index<std::remove_cvref_t<R>>, std::remove_cvref_t<R>>;
  /// Whether there is a field beside an image.
  static constexpr bool has_roles = !(std::is_same_v<typename Fields::role, changed_field> && ...);

 public:
  template <class R>
  static constexpr std::uint64_t streams = detail::chain_check<first_of<R>, Fs...>::streams;
  template <class R>
  static constexpr bool draws = streams<R> != 0;
  [[nodiscard]] constexpr std::uint64_t stream_address() const noexcept { return address.hash; }

  template <any_record R, class Call>
  constexpr auto apply(R&& sample, const Call& c) const {
    using type = std::remove_cvref_t<R>;
    return [&]<std::size_t... Is>(std::index_sequence<Is...>) {
      return detail::record_like<type>(changed<Is>(std::forward<R>(sample), c)...);
    }(std::make_index_sequence<type::size>{});
  }
  [[nodiscard]] std::string describe() const {
    std::string text;
    ((text += text.empty() ? "map<\"" : ", \"", text += Fields::name_type::value, text += "\""), ...);
    return text + ">";
  }

  template <class Context>
  static consteval auto diagnose() {
    using element = std::remove_cvref_t<typename Context::element>;
    if constexpr (!(has_field<element, typename Fields::name_type> && ...))
      return mistakes::no_such_field{};
    else if constexpr (!detail::names_differ<basic_field<typename Fields::name_type, int>...>())
      return mistakes::field_twice{};
    else if constexpr (has_roles && !(std::is_same_v<typename field_at<0>::role, changed_field> &&
                                      detail::sized_image<first_of<element>>))
      return mistakes::places_without_image{};
    else if constexpr (has_roles && !(detail::knows_places<Fs> && ...))
      return mistakes::places_unknown{};
    else
      return typename detail::first_mistake<decltype(diagnose_field<element, Fields>())...>::type{};
  }

 private:
  /// The function of a role in the place of function `I`.
  template <class Role, std::size_t I>
  using called = decltype(Role::function(std::declval<const std::tuple_element_t<I, std::tuple<Fs...>>&>()));
  template <class Role, class First, class Is = std::index_sequence_for<Fs...>>
  struct chain_of;
  template <class Role, class First, std::size_t... Is>
  struct chain_of<Role, First, std::index_sequence<Is...>> {
    using type =
        function_chain<detail::joint_function<called<Role, Is>, detail::joint_streams<First, Fs...>[Is]>...>;
    static constexpr type make(const std::tuple<Fs...>& functions) {
      return type(detail::joint_function<called<Role, Is>, detail::joint_streams<First, Fs...>[Is]> {
        Role::function(std::get<Is>(functions))
      }...);
    }
  };

  template <class R, class Field>
  static consteval auto diagnose_field() {
    using role = typename Field::role;
    using value = std::tuple_element_t<R::template index_of<typename Field::name_type>, R>;
    if constexpr (detail::follows<role>)
      return typename role::template wrong<value>{};
    else
      return detail::diagnose_function<typename chain_of<role, first_of<R>>::type, value>();
  }

  /// Field `I` of the record, changed if it is one of the fields.
  template <std::size_t I, class R, class Call>
  constexpr decltype(auto) changed(R&& sample, const Call& c) const {
    using type = std::remove_cvref_t<R>;
    constexpr std::size_t at =
        detail::index_of_field<typename type::template field_at<I>::name_type, Fields...>();
    if constexpr (at == detail::not_found) {
      return get<I>(std::forward<R>(sample));
    } else {
      using role = typename field_at<at>::role;
      using value = std::tuple_element_t<I, type>;
      auto& memory = std::get<at>(c.scratch);
      if constexpr (detail::follows<role>) {
        auto places = role::begin(get<first_index<type>>(sample).size());
        follow_all<first_of<R>>(places, c);
        return role::finish(places, get<I>(std::forward<R>(sample)), memory);
      } else {
        if constexpr (at != 0 && (detail::moves_places<Fs> || ...) && detail::sized_image<first_of<R>> &&
                      detail::sized_image<value>)
          check_sizes<field_at<at>>(get<first_index<type>>(sample).size(), get<I>(sample).size());
        using chain = chain_of<role, first_of<R>>;
        const call<std::remove_cvref_t<decltype(memory)>> own{c.at, c.piece, c.seed, c.stream, memory};
        return detail::call_function(chain::make(functions), get<I>(std::forward<R>(sample)), own);
      }
    }
  }
  template <class Field, class Size>
  static constexpr void check_sizes(const Size& first, const Size& other) {
    if (!(first == other)) [[unlikely]]
      detail::refuse_sizes(field_at<0>::name_type::value, Field::name_type::value, first.width, first.height,
                           other.width, other.height);
  }
  /// Moves places through all functions, each with the random numbers that it has for the image.
  template <class First, class Places, class Call>
  constexpr void follow_all(Places& places, const Call& c) const {
    [&]<std::size_t... Is>(std::index_sequence<Is...>) {
      std::uint64_t drawn = 0;
      ((follow_one(std::get<Is>(functions), places, c, drawn),
        drawn += detail::joint_streams<First, Fs...>[Is]),
       ...);
    }(std::index_sequence_for<Fs...>{});
  }
  template <class F, class Places, class Call>
  static constexpr void follow_one(const F& f, Places& places, const Call& c, std::uint64_t drawn) {
    if constexpr (detail::moves_places<F>) {
      rng random = detail::call_after(c, drawn, c.scratch).random();
      f.follow(places, random);
    }
  }
};

/// One `map` of several fields: `map<"left", "right">(f, g, ...)` changes all with the same random numbers. A
/// `key` may stand at the end. With an image in the first field, others may be its `as_mask<"png">`,
/// `as_boxes<"boxes">` and `as_points<"joints">`. Copies nothing; each field has memory of its own per
/// worker.
template <mapped_field First, mapped_field Second, mapped_field... More, class F, class... Fs>
[[nodiscard]] constexpr auto map(F first, Fs... rest) {
  using fields = pack<detail::as_role<First>, detail::as_role<Second>, detail::as_role<More>...>;
  return detail::with_functions(
      []<class... Functions>(std::tuple<Functions...> functions, key address) {
        return map_fields_stage<fields, Functions...>{std::move(functions), address};
      },
      std::move(first), std::move(rest)...);
}

}  // namespace penstock::inline v0_1
