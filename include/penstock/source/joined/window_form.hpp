// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/mistake.hpp>
#include <penstock/core/name.hpp>
#include <penstock/core/record.hpp>
#include <penstock/source/joined/joined_plans.hpp>
#include <penstock/source/joined/plan_values.hpp>
#include <penstock/source/joined/window_reader.hpp>
#include <penstock/source/window_options.hpp>
#include <penstock/source/zip.hpp>

#include <concepts>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

namespace mistakes {

struct windows_of_no_source : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: windows takes a source of rows, alone or with decode, fields and map; wrap a "
                  "container in from(...)");
  }
};
struct windows_of_forward : about_expression {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: windows needs rows at any place, and this source can only be read forward; use a "
        "source with an index");
  }
};
struct windows_after_batch : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: windows takes rows, and these are batches; write batch(n) after it, as in "
                  "windows(rows, {.length = 64}) | batch(n)");
  }
};
struct windows_after_order : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: windows takes rows as the source has them, with decode, fields and map at most; "
                  "write orders, filters, shard, workers and the like after it");
  }
};
struct windows_of_mix : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: windows takes rows of which each epoch has the same, and those of mix, or of "
                  "joined sources with orders, differ; mix the windows of each source");
  }
};
struct windows_names : about_expression {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: windows<...> takes at most two names, that of the column of episodes and that of "
        "times; the offsets of a column are column_at<\"name\">{-1, 0, 1}");
  }
};
struct windows_needs_fields : about_element {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: windows<...> and column_at<...> name columns, and these rows have no field names; "
        "name them with decode<field<\"name\", Codec>...>, or zip<\"name\", ...>(...)");
  }
};
struct windows_no_such_column : about_element {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: windows names a column that the rows do not have; this error names those that "
                  "they have, in arrives_here<...>");
  }
};
struct windows_episode_type : about_element {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: the column of episodes of windows<\"name\"> must have whole numbers or texts, one "
        "for each row");
  }
};
struct windows_time_type : about_element {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: the column of times of windows<\"episode\", \"time\"> must have numbers, in seconds, "
        "one for each row");
  }
};
struct windows_of_texts : about_element {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: a window is of numbers or of arrays of them, and a column has something else; leave "
        "it out with fields<...>, or say with column_at<...> which columns have windows: others keep "
        "the value of the row");
  }
};

}  // namespace mistakes

namespace detail {

/// "action_is_pad" for "action".
template <class Name>
struct pad_name;
template <char... Cs>
struct pad_name<name<Cs...>> {
  using type = name<Cs..., '_', 'i', 's', '_', 'p', 'a', 'd'>;
};

template <class Element, class Name>
using row_value = lone_value_of<std::remove_cvref_t<typename std::remove_cvref_t<Element>::template field_at<
    std::remove_cvref_t<Element>::template index_of<Name>>::type>>;

/// The samples of rows that are no records.
template <class Element>
struct bare_form {
  using names = light_tuple<>;
  static constexpr bool narrows = false;
  static constexpr std::size_t count = 1;
  template <std::size_t>
  using row_value = Element;
  template <std::size_t>
  static constexpr bool windowed = true;
  template <class Reader>
  using element = window_values<Reader, 0, typename stored<Element>::type>;

  template <class Reader, class Worker>
  static element<Reader> make(const Reader& reader, Worker& w, const window_place& at, std::uint64_t epoch,
                              const extents& row) {
    return {reader, w, at, epoch, 0, row};
  }
};

/// The samples of rows that are records of `Fields`. `Episode`: the name of the column of episodes, or void.
/// `Own`: the names of the columns that have offsets of their own; if there is none, all columns have the
/// same.
template <class Plan, class Record, class Episode, class... Own>
struct record_form;
template <class Plan, class... Fields, class Episode, class... Own>
struct record_form<Plan, record<Fields...>, Episode, Own...> {
  using names = light_tuple<typename Fields::name_type...>;
  static constexpr bool narrows =
      sizeof...(Fields) != 0 && (detail::narrows<typename Fields::name_type, Plan> && ...);
  static constexpr bool shared_offsets = sizeof...(Own) == 0;
  static constexpr bool numbers_steps = !(std::same_as<typename Fields::name_type, name_of<"step">> || ...);

  /// The list of offsets of a column, or `not_found` if it has the row's own value.
  template <class Name>
  static constexpr std::size_t list_of = [] {
    if constexpr (shared_offsets)
      return std::same_as<Name, Episode> ? not_found : std::size_t{0};
    else
      return index_of_field<Name, basic_field<Own, int>...>();
  }();
  static constexpr std::size_t count = sizeof...(Fields);
  template <std::size_t I>
  using row_value = std::remove_cvref_t<typename type_at<I, light_tuple<Fields...>>::type>;
  template <std::size_t I>
  static constexpr bool windowed =
      list_of<typename type_at<I, light_tuple<Fields...>>::name_type> != not_found;

  template <class Reader, std::size_t I, class Field>
  using value = typename std::conditional_t<
      list_of<typename Field::name_type> == not_found, std::type_identity<zipped<typename Field::type>>,
      std::type_identity<
          window_values<Reader, I, typename stored<std::remove_cvref_t<typename Field::type>>::type>>>::type;

  template <class Reader, class Is>
  struct columns;
  template <class Reader, std::size_t... Is>
  struct columns<Reader, std::index_sequence<Is...>> {
    using type = light_tuple<basic_field<typename Fields::name_type, value<Reader, Is, Fields>>...>;
  };
  template <class Is>
  struct masks;
  template <std::size_t... Is>
  struct masks<std::index_sequence<Is...>> {
    using type = light_tuple<basic_field<typename pad_name<Own>::type, window_mask<Is>>...>;
  };
  using mask_fields = typename std::conditional_t<
      shared_offsets, std::type_identity<light_tuple<basic_field<name_of<"is_pad">, window_mask<0>>>>,
      masks<std::index_sequence_for<Own...>>>::type;
  using step_fields =
      std::conditional_t<numbers_steps, light_tuple<basic_field<name_of<"step">, std::int64_t>>,
                         light_tuple<>>;

  template <class... Packs>
  struct joined_fields;
  template <class... As, class... Bs, class... Cs>
  struct joined_fields<light_tuple<As...>, light_tuple<Bs...>, light_tuple<Cs...>> {
    using type = record<As..., Bs..., Cs...>;
  };
  template <class Reader>
  using element = typename joined_fields<typename columns<Reader, std::index_sequence_for<Fields...>>::type,
                                         mask_fields, step_fields>::type;

  /// `parts`: for each field, the shape of its row, or the row's value.
  template <class Reader, class Worker, class... Parts>
  static element<Reader> make(const Reader& reader, Worker& w, const window_place& at, std::uint64_t epoch,
                              const Parts&... parts) {
    constexpr std::size_t lists = shared_offsets ? 1 : sizeof...(Own);
    const std::tuple<const Parts&...> all(parts...);
    return [&]<std::size_t... Is, std::size_t... Ms, std::size_t... Ss>(
               std::index_sequence<Is...>, std::index_sequence<Ms...>, std::index_sequence<Ss...>) {
      return element<Reader>(
          made_by{}, [&] { return column<Reader, Is>(reader, w, at, epoch, std::get<Is>(all)); }...,
          [&] { return window_mask<Ms>(reader.places(), at, Ms, w.finished[count + Ms]); }...,
          [&] { return static_cast<std::int64_t>(at.row - at.begin + Ss); }...);
    }(std::index_sequence_for<Fields...>{}, std::make_index_sequence<lists>{},
           std::make_index_sequence < numbers_steps ? 1 : 0 > {});
  }

 private:
  template <class Reader, std::size_t I, class Worker, class Part>
  static auto column(const Reader& reader, Worker& w, const window_place& at, std::uint64_t epoch,
                     const Part& part) {
    using field = type_at<I, light_tuple<Fields...>>;
    using made = value<Reader, I, field>;
    if constexpr (windowed<I>)
      return made(reader, w, at, epoch, list_of<typename field::name_type>, part);
    else
      return made(part);
  }
};

template <class Plan, class Names, class... Own>
struct form_of {
  using element = std::remove_cvref_t<typename Plan::element>;
  template <class E, class N>
  struct of : std::type_identity<bare_form<E>> {};
  template <any_record E, class... Ns>
  struct of<E, light_tuple<Ns...>> : std::type_identity<record_form<Plan, E, void, Own...>> {};
  template <any_record E, class Episode, class... Ns>
  struct of<E, light_tuple<Episode, Ns...>> : std::type_identity<record_form<Plan, E, Episode, Own...>> {};
  using type = typename of<element, Names>::type;
};
/// What `windows` makes of a plan's rows.
template <class Plan, class Names, class... Own>
using window_form_of = typename form_of<Plan, Names, Own...>::type;

template <class Form, class Record>
inline constexpr bool windows_fit = false;
template <class Form, class... Fields>
inline constexpr bool windows_fit<Form, record<Fields...>> =
    ((Form::template list_of<typename Fields::name_type> == not_found ||
      fits_window<std::remove_cvref_t<typename Fields::type>>)&&...);

template <class V>
inline constexpr bool is_episode_value =
    std::convertible_to<const V&, std::string_view> || (std::integral<V> && !std::same_as<V, bool>);

/// The mistake in the columns that are named, or `none`.
template <class Plan, class Names, class... Own>
struct wrong_columns;
template <class Plan, class... Names, class... Own>
struct wrong_columns<Plan, light_tuple<Names...>, Own...> {
  using element = std::remove_cvref_t<typename Plan::element>;
  static consteval auto find() {
    if constexpr (sizeof...(Names) > 2) {
      return mistakes::windows_names{};
    } else if constexpr (!any_record<element>) {
      if constexpr (sizeof...(Names) + sizeof...(Own) != 0)
        return mistakes::windows_needs_fields{};
      else
        return mistakes::unless<fits_window<element>, mistakes::windows_of_texts>{};
    } else if constexpr (!(has_field<element, Names> && ...) || !(has_field<element, Own> && ...)) {
      return mistakes::windows_no_such_column{};
    } else if constexpr (!names_differ<basic_field<Own, int>...>()) {
      return mistakes::field_twice{};
    } else if constexpr (!episode_fits(static_cast<const light_tuple<Names...>*>(nullptr))) {
      return mistakes::windows_episode_type{};
    } else if constexpr (!times_fit(static_cast<const light_tuple<Names...>*>(nullptr))) {
      return mistakes::windows_time_type{};
    } else {
      return mistakes::unless<windows_fit<window_form_of<Plan, light_tuple<Names...>, Own...>, element>,
                              mistakes::windows_of_texts>{};
    }
  }

 private:
  static consteval bool episode_fits(const light_tuple<>*) { return true; }
  template <class Name, class... Times>
  static consteval bool episode_fits(const light_tuple<Name, Times...>*) {
    return is_episode_value<row_value<element, Name>>;
  }
  static consteval bool times_fit(const light_tuple<>*) { return true; }
  template <class Name, class... Times>
  static consteval bool times_fit(const light_tuple<Name, Times...>*) {
    return (std::is_arithmetic_v<row_value<element, Times>> && ...);
  }
};

/// The mistake in making windows of `Rows`, or `none`.
template <class Names, class Rows, class... Columns>
consteval auto find_wrong_windows() {
  if constexpr (!begun<Rows>) {
    return mistakes::windows_of_no_source{};
  } else {
    using p = plan_for<Rows>;
    constexpr chain_facts f = p::context::facts;
    if constexpr (f.batched)
      return mistakes::windows_after_batch{};
    else if constexpr (f.forward)
      return mistakes::windows_of_forward{};
    else if constexpr (!keeps_rows<p>)
      return mistakes::windows_after_order{};
    else if constexpr (renumbering_source<typename p::source_type>)
      return mistakes::windows_of_mix{};
    else
      return wrong_columns<p, Names, typename Columns::name_type...>::find();
  }
}
/// What `make` makes of rows, unless they are what an earlier mistake left, or windows of them are a mistake.
template <class Names, class... Columns, class Rows, class Make>
[[nodiscard]] auto windows_unless_wrong(const Rows& rows, Make&& make) {
  using wrong = decltype(find_wrong_windows<Names, Rows, Columns...>());
  if constexpr (part_of_kind<Rows, poison_tag>) {
    return ill_formed{};
  } else if constexpr (is_right<wrong>) {
    return make(rows);
  } else {
    if constexpr (std::same_as<typename wrong::penstock_mistake, about_element_tag>)
      wrong::explain(arrives_here<std::remove_cvref_t<typename plan_for<Rows>::element>>{});
    else
      wrong::explain(0);
    return ill_formed{};
  }
}

}  // namespace detail

}  // namespace penstock::inline v0_1
