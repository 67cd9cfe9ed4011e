// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/cached_form.hpp>
#include <penstock/core/pipe.hpp>
#include <penstock/evaluation/parts.hpp>
#include <penstock/evaluation/sample_cache_node.hpp>

#include <cstddef>
#include <utility>

/// A plan with a part of its work taken away: the stages up to a place, or the copy to its device.
namespace penstock::inline v0_1::detail {

/// A few samples, one for each place in the order modulo their number, stand in for all.
struct kept_by_place {
  static constexpr std::uint64_t places = 32;
  [[nodiscard]] static std::uint64_t number(const sample_position& p) noexcept { return p.at.index % places; }
  /// Nothing is read ahead.
  [[nodiscard]] static bool is_kept(const sample_cache_table&, position) noexcept { return true; }
};

/// Shows the same few samples over and over, so that the stages before it soon cost nothing. Those behind it
/// work on each as ever; random ones draw other numbers each time.
struct repeated_samples_stage {
  using penstock_part = sample_cache_tag;
  static constexpr std::string_view stage_name = "repeated samples";

  template <class In>
  using output = shown_of<In>;
  template <class Element, class Up>
  [[nodiscard]] sample_cache_node<Up, Element, kept_by_place> around(Up up) const {
    return {std::move(up), 1_GiB};
  }
};

/// Where samples of a plan can be repeated: before the stage of that number.
struct repeat_places {
  static constexpr std::size_t nowhere = static_cast<std::size_t>(-1);
  std::size_t first = nowhere;  ///< as early as possible
  std::size_t last = nowhere;   ///< later than that, and before everything that is to differ in each epoch
};

/// `Computed`: whether the stage before this place made new values.
template <bool Computed, class Context, class... Rest>
struct find_repeat_places {
  static consteval repeat_places behind(std::size_t place, repeat_places found) {
    using element = std::remove_cvref_t<typename Context::element>;
    constexpr auto f = Context::facts;
    if constexpr (f.forward || f.decided || f.expanded || f.batched) {
      return found;
    } else {
      if constexpr (Computed && keepable<element>) {
        using repeated = typename fold_context<Context, repeated_samples_stage>::type;
        if constexpr (is_right<typename diagnose_all<repeated, Rest...>::type>) {
          if (found.first == repeat_places::nowhere)
            found.first = place;
          else if (!f.drawn && !f.placed)
            found.last = place;
        }
      }
      return go_on(place, found, static_cast<const light_tuple<Rest...>*>(nullptr));
    }
  }

 private:
  static consteval repeat_places go_on(std::size_t, repeat_places found, const light_tuple<>*) {
    return found;
  }
  template <class Stage, class... More>
  static consteval repeat_places go_on(std::size_t place, repeat_places found,
                                       const light_tuple<Stage, More...>*) {
    return find_repeat_places<value_stage<Stage>, typename fold_context<Context, Stage>::type,
                              More...>::behind(place + 1, found);
  }
};

template <class Plan>
struct repeat_places_of;
template <class Source, class... Stages>
struct repeat_places_of<plan<Source, Stages...>> {
  static constexpr repeat_places value = [] {
    if constexpr (plan_parts<plan<Source, Stages...>>::packed)
      return repeat_places{};  // a row expects samples of certain lengths
    else
      return find_repeat_places<true, context_of<Source>, Stages...>::behind(0, {});
  }();
  /// How many of the stages that a run counts come before such a place; the source is one.
  static constexpr std::size_t counted(std::size_t place) {
    std::size_t count = 1, at = 0;
    ((count += at++ < place && value_stage<Stages> ? 1u : 0u), ...);
    return count;
  }
};

template <std::size_t Place, class Source, class... Stages>
auto with_repeated_samples(const plan<Source, Stages...>& p) {
  return [&]<std::size_t... Before, std::size_t... After>(std::index_sequence<Before...>,
                                                          std::index_sequence<After...>) {
    return make_plan(p.source(), make_light_tuple(at<Before>(p.stages())..., repeated_samples_stage{},
                                                  at<Place + After>(p.stages())...));
  }(std::make_index_sequence<Place>{}, std::make_index_sequence<sizeof...(Stages) - Place>{});
}

template <class... Kept>
auto stages_on_host(light_tuple<Kept...> kept) {
  return kept;
}
template <class... Kept, class Stage, class... Rest>
auto stages_on_host(light_tuple<Kept...> kept, const Stage& stage, const Rest&... rest) {
  if constexpr (part_of_kind<Stage, device_tag> || part_of_kind<Stage, device_map_tag>)
    return stages_on_host(std::move(kept), rest...);
  else
    return stages_on_host(join(std::move(kept), make_light_tuple(stage)), rest...);
}
/// The plan without its device, and without what works there.
template <class Source, class... Stages>
auto without_device(const plan<Source, Stages...>& p) {
  return make_plan(p.source(), p.stages().apply([](const Stages&... all) {
    return stages_on_host(light_tuple<>{}, all...);
  }));
}

}  // namespace penstock::inline v0_1::detail
