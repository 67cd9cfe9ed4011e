// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/mapped_field.hpp>
#include <penstock/stage/field_roles.hpp>
#include <penstock/stage/map.hpp>

namespace penstock::inline v0_1 {

namespace mistakes {

struct places_unknown : about_expression {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: a map of an image and its masks, boxes or points has a function that does not say "
        "what becomes of places in the image; write it in a map<\"jpg\">(f) of its own, or give it "
        "`using keeps_places = void;` if it moves no pixel");
  }
};
struct places_without_image : about_element {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: the first field of a map with masks, boxes or points is their image or clip, and this "
        "one is neither; write map<\"jpg\", as_mask<\"png\">, as_boxes<\"boxes\">>(...) after decode, and "
        "for a film after a map<\"mp4\">(clip(16)) of its own");
  }
};

struct map_without_function : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: a map of several fields has no function; write it before the key, as in "
                  "map<\"left\", \"right\">(f, key(\"a\"))");
  }
};

}  // namespace mistakes

namespace detail {

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
/// `as_mask<"name">`, `as_boxes<"name">` and `as_points<"name">`: the first field is then the image or clip,
/// and every function says what becomes of places in it, as all image operations but `trivial_augment` and
/// `rand_augment` do. Pointwise; keeps all five guarantees.
///
/// Images whose geometry changes have one size: another one is `errc::shape`, for the sample.
///
///     auto both = map<"left", "right">([](double x, rng& random) { return x + random.uniform(); });
template <class Fields, class... Fs>
struct map_fields_stage;

template <class... Fields, class... Fs>
struct map_fields_stage<light_tuple<Fields...>, Fs...> {
  using penstock_part = pointwise_tag;
  static constexpr std::string_view stage_name = "map";
  using scratch = std::tuple<typename detail::role_parts<typename Fields::role, Fs...>::scratch...>;
  [[no_unique_address]] std::tuple<Fs...> functions;
  /// What the roles put in the place of functions, field by field.
  [[no_unique_address]] std::tuple<typename detail::role_parts<typename Fields::role, Fs...>::kept...> kept;
  key address;

  constexpr map_fields_stage(std::tuple<Fs...> all, key where)
      : functions(std::move(all)),
        kept(std::apply(detail::role_parts<typename Fields::role, Fs...>::keep, functions)...),
        address(where) {}

 private:
  template <std::size_t I>
  using field_at = std::tuple_element_t<I, std::tuple<Fields...>>;
  template <class R>
  static constexpr std::size_t first_index = R::template index_of<typename field_at<0>::name_type>;
  template <class R>
  using first_of = std::tuple_element_t<first_index<std::remove_cvref_t<R>>, std::remove_cvref_t<R>>;
  static constexpr bool has_roles = !(std::is_same_v<typename Fields::role, changed_field> && ...);

 public:
  template <class R>
  static constexpr std::uint64_t streams = detail::chain_check<first_of<R>, Fs...>::streams;
  template <class R>
  static constexpr bool uses_random = streams<R> != 0;
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
      return detail::missing_field_in<element>{};
    else if constexpr (!detail::names_differ<basic_field<typename Fields::name_type, int>...>())
      return mistakes::field_twice{};
    else if constexpr (sizeof...(Fs) == 0)
      return mistakes::map_without_function{};
    else if constexpr (detail::makes_fields<function_chain<Fs...>>)
      return mistakes::fields_in_a_field{};
    else if constexpr (has_roles && !(std::is_same_v<typename field_at<0>::role, changed_field> &&
                                      detail::sized_image<first_of<element>>))
      return mistakes::places_without_image{};
    else if constexpr (has_roles && !(detail::knows_places<Fs> && ...))
      return mistakes::places_unknown{};
    else
      return typename detail::first_mistake<decltype(diagnose_field<element, Fields>())...>::type{};
  }

 private:
  template <class Role, std::size_t I>
  using called =
      std::remove_cvref_t<detail::called_in_role<Role, std::tuple_element_t<I, std::tuple<Fs...>>>>;
  template <class Role, class First, class Is = std::index_sequence_for<Fs...>>
  struct chain_of;
  template <class Role, class First, std::size_t... Is>
  struct chain_of<Role, First, std::index_sequence<Is...>> {
    using type =
        function_chain<detail::joint_function<called<Role, Is>, detail::joint_streams<First, Fs...>[Is]>...>;
    template <class Kept>
    static constexpr type make(const std::tuple<Fs...>& given, const Kept& instead) {
      return type(detail::joint_function<called<Role, Is>, detail::joint_streams<First, Fs...>[Is]> {
        function_at<Role, Is>(given, instead)
      }...);
    }
  };
  template <class Role, std::size_t I, class Kept>
  static constexpr const called<Role, I>& function_at(const std::tuple<Fs...>& given, const Kept& instead) {
    if constexpr (std::is_same_v<std::tuple_element_t<I, Kept>, detail::function_itself>)
      return Role::function(std::get<I>(given));
    else
      return std::get<I>(instead);
  }

  template <class R, class Field>
  static consteval auto diagnose_field() {
    using role = typename Field::role;
    using value = std::tuple_element_t<R::template index_of<typename Field::name_type>, R>;
    if constexpr (detail::follows<role>) {
      return typename role::template wrong<value>{};
    } else {
      constexpr auto wrong = detail::diagnose_function<typename chain_of<role, first_of<R>>::type, value>();
      if constexpr (!detail::is_right<std::remove_const_t<decltype(wrong)>> &&
                    requires { typename role::template reason<value>; })
        return typename role::template reason<value>{};
      else
        return wrong;
    }
  }

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
        return role::finish(places, field_at<at>::name_type::value, get<I>(std::forward<R>(sample)), memory);
      } else {
        if constexpr (at != 0 && (detail::moves_places<Fs> || ...) && detail::sized_image<first_of<R>> &&
                      detail::sized_image<value>)
          check_sizes<field_at<at>>(get<first_index<type>>(sample).size(), get<I>(sample).size());
        using chain = chain_of<role, first_of<R>>;
        const call<std::remove_cvref_t<decltype(memory)>> own{c.at, c.piece, c.seed, c.stream, memory};
        return detail::call_function(chain::make(functions, std::get<at>(kept)),
                                     get<I>(std::forward<R>(sample)), own);
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
/// worker. A single field that is a mask, boxes or points is a mistake that `|` explains.
template <mapped_field First, mapped_field... More, class F, class... Fs>
  requires(sizeof...(More) != 0 || !std::is_same_v<typename decltype(First)::role, changed_field>)
[[nodiscard]] constexpr auto map(F first, Fs... rest) {
  using fields = light_tuple<detail::as_role<First>, detail::as_role<More>...>;
  return detail::with_functions(
      []<class... Functions>(std::tuple<Functions...> functions, key address) {
        return map_fields_stage<fields, Functions...>(std::move(functions), address);
      },
      std::move(first), std::move(rest)...);
}

}  // namespace penstock::inline v0_1
