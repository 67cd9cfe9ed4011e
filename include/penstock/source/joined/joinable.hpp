// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/mistake.hpp>
#include <penstock/core/pipe.hpp>
#include <penstock/core/plan.hpp>
#include <penstock/source/concepts.hpp>

#include <type_traits>

/// Which sources `mix`, `zip` and `concat` can join.
namespace penstock::inline v0_1 {

namespace mistakes {

struct joins_no_source : about_expression_tag {
  template <class Reached>
  static consteval void explain() {
    static_assert(
        never<Reached>,
        "penstock: mix, zip and concat join sources, and sources with stages; one argument is something "
        "else; wrap a container in from(...)");
  }
};
struct joins_forward : about_expression_tag {
  template <class Reached>
  static consteval void explain() {
    static_assert(never<Reached>,
                  "penstock: mix, zip and concat compute with positions, and one of these sources can only "
                  "be read forward; use a source with an index");
  }
};
struct joins_sharded : about_expression_tag {
  template <class Reached>
  static consteval void explain() {
    static_assert(never<Reached>,
                  "penstock: shard inside mix, zip or concat; positions are global, write shard(rank, "
                  "world) once, after it");
  }
};
struct joins_batched : about_expression_tag {
  template <class Reached>
  static consteval void explain() {
    static_assert(never<Reached>,
                  "penstock: batch inside mix, zip or concat, which join samples; write batch(n) after it");
  }
};
struct joins_cursor : about_expression_tag {
  template <class Reached>
  static consteval void explain() {
    static_assert(never<Reached>,
                  "penstock: shuffle_buffer inside mix, zip or concat, which compute with positions; write "
                  "shuffle(seed(7), window(w)) there, or shuffle_buffer after it");
  }
};
struct joins_filter : about_expression_tag {
  template <class Reached>
  static consteval void explain() {
    static_assert(never<Reached>,
                  "penstock: filter or unbatch inside mix, zip or concat, which must know how many samples "
                  "there are; write it after them");
  }
};
struct joins_annotation : about_expression_tag {
  template <class Reached>
  static consteval void explain() {
    static_assert(never<Reached>,
                  "penstock: inside mix, zip and concat the only annotation allowed is seed(n); workers, "
                  "prefetch, memory and the like apply to the whole run, write them after it");
  }
};
struct joins_bad_samples : about_expression_tag {
  template <class Reached>
  static consteval void explain() {
    static_assert(never<Reached>,
                  "penstock: bad_samples inside mix, zip or concat; a budget counts the samples of the "
                  "whole run, write it after them");
  }
};
struct joins_nothing : about_expression_tag {
  template <class Reached>
  static consteval void explain() {
    static_assert(never<Reached>, "penstock: mix, zip and concat need at least one source to join");
  }
};

}  // namespace mistakes

namespace detail {

template <class... Stages>
consteval bool annotates(const pack<Stages...>*) {
  return ((part_of_kind<Stages, annotation_tag> && !seed_annotation<Stages>) || ...);
}
template <class T>
inline constexpr bool annotates_a_run = false;
template <part_of_kind<plan_tag> T>
inline constexpr bool annotates_a_run<T> = annotates(static_cast<const typename T::stages_type*>(nullptr));

/// The mistake in joining T, or `none`.
template <class T>
consteval auto wrong_to_join() {
  if constexpr (!begun<T>) {
    return mistakes::joins_no_source{};
  } else {
    constexpr chain_facts f = plan_context<T>::type::facts;
    if constexpr (f.batched)
      return mistakes::joins_batched{};
    else if constexpr (f.sharded)
      return mistakes::joins_sharded{};
    else if constexpr (f.cursor)
      return mistakes::joins_cursor{};
    else if constexpr (f.decided)
      return mistakes::joins_filter{};
    else if constexpr (f.forward)
      return mistakes::joins_forward{};
    else if constexpr (f.bad_samples)
      return mistakes::joins_bad_samples{};
    else if constexpr (annotates_a_run<T>)
      return mistakes::joins_annotation{};
    else
      return mistakes::none{};
  }
}
/// The first mistake among the sources to be joined.
template <class... Ts>
struct wrong_join : first_mistake<decltype(wrong_to_join<Ts>())...> {};
template <>
struct wrong_join<> {
  using type = mistakes::joins_nothing;
};
/// The first mistake among the sources in packs: the arguments of a joint, without its options.
template <class... Packs>
struct wrong_join_of_packs;
template <class... Ts>
struct wrong_join_of_packs<pack<Ts...>> : wrong_join<Ts...> {};
template <class... Ts, class... Us, class... Rest>
struct wrong_join_of_packs<pack<Ts...>, pack<Us...>, Rest...>
    : wrong_join_of_packs<pack<Ts..., Us...>, Rest...> {};
template <bool IsOption, class T>
using pack_unless = std::conditional_t<IsOption, pack<>, pack<T>>;

template <class T>
[[nodiscard]] auto as_plan(const T& x) {
  if constexpr (part_of_kind<T, plan_tag>)
    return x;
  else
    return plan<T>(x);
}
template <class T>
using plan_for = decltype(as_plan(std::declval<const T&>()));
/// The plan of an argument in a pack, or an empty pack for an option.
template <bool IsOption, class T>
[[nodiscard]] auto plan_unless([[maybe_unused]] const T& x) {
  if constexpr (IsOption)
    return pack<>{};
  else
    return make_pack(as_plan(x));
}

/// What `make` makes of arguments, unless one of them is what an earlier mistake left, or `Wrong` is a
/// mistake. `make` is a generic lambda, so that it is not looked into then.
template <class Wrong, class Make, class... Args>
[[nodiscard]] auto unless_wrong(Make&& make, const Args&... args) {
  if constexpr ((part_of_kind<Args, poison_tag> || ...)) {
    return ill_formed{};
  } else if constexpr (!is_right<Wrong>) {
    Wrong::template explain<void>();
    return ill_formed{};
  } else {
    return make(args...);
  }
}

/// The guarantees that the joined source loses: those that any of its plans has lost.
template <class... Plans>
consteval guarantee_set lost_by_joined() {
  guarantee_set lost;
  ((lost = lost.with(Plans::context::facts.lost)), ...);
  return lost;
}

/// Whether number i names a different sample in each epoch, or depends on more than the data.
template <class Source, class... Stages>
consteval bool renumbers(const plan<Source, Stages...>*) {
  return renumbering_source<Source> || (part_of_kind<Stages, order_tag> || ...);
}
template <class Plan>
inline constexpr bool plan_renumbers = renumbers(static_cast<const Plan*>(nullptr));

}  // namespace detail

}  // namespace penstock::inline v0_1
