// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/cached_form.hpp>
#include <penstock/core/light_tuple.hpp>
#include <penstock/core/mistake.hpp>
#include <penstock/core/pipe.hpp>
#include <penstock/core/plan.hpp>
#include <penstock/evaluation/chosen_cache_node.hpp>
#include <penstock/evaluation/parts.hpp>
#include <penstock/evaluation/place_choice.hpp>

#include <string>
#include <type_traits>
#include <utility>

/// The places of a plan where samples may be kept, found in its type.
namespace penstock::inline v0_1 {

namespace mistakes {

struct keep_nowhere : about_expression {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: keep_in_memory(limit, keep_at::automatic) has no place to keep samples at: before the "
        "first stage "
        "that draws random numbers there must be a source or a stage whose samples can be kept, as behind "
        "fields<\"jpg\", \"cls\">, and which the stages behind it take when they are shown");
  }
};
struct keep_chosen_twice : about_expression {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: keep_in_memory(limit, keep_at::automatic) twice in one expression; one chooses among all "
        "places, so remove the other");
  }
};

}  // namespace mistakes

namespace detail {

/// A stage of a chain, not of the plan: a place where samples may be kept.
template <std::uint32_t Place, class... Others>
struct kept_place_stage {
  using penstock_part = sample_cache_tag;
  std::uint64_t limit;
  shared<place_choice> choice;

  template <class In>
  using output = In;
  template <class Element, class Up>
  [[nodiscard]] auto around(Up up) const {
    return chosen_cache_node<Up, Element, Place, Others...>(std::move(up), limit, choice);
  }
};
struct choosing_place_stage {
  using penstock_part = sample_cache_tag;
  shared<place_choice> choice;

  template <class In>
  using output = In;
  template <class Element, class Up>
  [[nodiscard]] auto around(Up up) const {
    return place_choosing_node<Up>(std::move(up), choice);
  }
};

template <class Context>
using as_shown = context<shown_of<typename Context::element>, Context::facts, typename Context::columns>;

/// Whether samples can be kept where `Stage` begins, so that it and those behind it take what is then shown.
/// Of several places between which nothing is made, the last one counts.
template <class Context, class Stage, class... Rest>
consteval bool is_kept_place() {
  constexpr chain_facts f = Context::facts;
  using element = std::remove_cvref_t<typename Context::element>;
  if constexpr (!value_stage<Stage> || f.drawn || f.placed || f.expanded || f.batched || f.packed)
    return false;
  else if constexpr (choosing_part<Stage> || !keepable<element>)
    return false;
  else
    return is_right<typename diagnose_all<as_shown<Context>, Stage, Rest...>::type>;
}

template <class Context, class Stage, class... Rest>
consteval bool any_kept_place() {
  if constexpr (is_kept_place<Context, Stage, Rest...>())
    return true;
  else if constexpr (sizeof...(Rest) == 0)
    return false;
  else
    return any_kept_place<typename fold_context<Context, Stage>::type, Rest...>();
}

/// The mistake of a stage that chooses a place behind this source or plan, or none.
template <class Chooser, class Before>
struct chooser_behind {
  static consteval auto diagnose() {
    return mistakes::unless<any_kept_place<context_of<Before>, Chooser>(), mistakes::keep_nowhere>{};
  }
};
template <class Chooser, class Source, class... Stages>
struct chooser_behind<Chooser, plan<Source, Stages...>> {
  static consteval auto diagnose() {
    return typename first_mistake<
        mistakes::unless<!(std::is_same_v<Stages, Chooser> || ...), mistakes::keep_chosen_twice>,
        mistakes::unless<any_kept_place<context_of<Source>, Stages..., Chooser>(),
                         mistakes::keep_nowhere>>::type{};
  }
};

/// Builds the stages of a chain from those of a plan. `Others`: contexts of samples that an earlier place
/// shows.
template <class Chooser>
struct kept_places {
  const Chooser& chooser;
  shared<place_choice> choice;
  std::string behind;  // what made the samples

  template <std::uint32_t Place, class Context, class... Others, class Stage, class... Rest>
  auto from(const light_tuple<Others...>*, const Stage& stage, const Rest&... rest) {
    if constexpr (is_kept_place<Context, Stage, Rest...>()) {
      choice->add(behind);
      auto here = make_light_tuple(
          kept_place_stage<Place, std::remove_cvref_t<typename Others::element>...>{chooser.limit, choice});
      return join(std::move(here),
                  past<Place + 1, Context>(static_cast<light_tuple<Others..., as_shown<Context>>*>(nullptr),
                                           stage, rest...));
    } else {
      return past<Place, Context>(static_cast<light_tuple<Others...>*>(nullptr), stage, rest...);
    }
  }

 private:
  template <std::uint32_t Place, class Context, class... Others, class Stage, class... Rest>
  auto past(const light_tuple<Others...>*, const Stage& stage, const Rest&... rest) {
    if constexpr (std::is_same_v<Stage, Chooser>) {
      if constexpr (Place == 1) mistakes::keep_nowhere::explain(std::type_identity<Context>{});
      if constexpr ((std::is_same_v<Rest, Chooser> || ...))
        mistakes::keep_chosen_twice::explain(std::type_identity<Context>{});
      return make_light_tuple(choosing_place_stage{choice}, rest...);
    } else {
      using next = typename fold_context<Context, Stage>::type;
      if constexpr (value_stage<Stage> && !choosing_part<Stage>) behind = text_of_stage(stage);
      if constexpr (next::facts.drawn && !Context::facts.drawn) choice->set_random(text_of_stage(stage));
      return join(
          make_light_tuple(stage),
          from<Place, next>(static_cast<light_tuple<typename fold_context<Others, Stage>::type...>*>(nullptr),
                            rest...));
    }
  }
};

/// The stages of a plan, with places to keep samples at before the stage that chooses one.
template <class Plan, class Chooser>
auto stages_with_places(const Plan& p, const Chooser& chooser, std::uint32_t only) {
  using source = typename Plan::source_type;
  kept_places<Chooser> places{chooser,
                              shared<place_choice>(new place_choice(chooser.limit, p.source().size())),
                              std::string(source::source_name)};
  auto all = p.stages().apply([&](const auto&... stages) {
    return places.template from<1, context_of<source>>(static_cast<light_tuple<>*>(nullptr), stages...);
  });
  places.choice->begin(only);
  return all;
}

}  // namespace detail

}  // namespace penstock::inline v0_1
