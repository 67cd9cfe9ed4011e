// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/flat_json.hpp>
#include <penstock/core/fingerprint.hpp>
#include <penstock/core/light_tuple.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/options.hpp>
#include <penstock/core/part.hpp>
#include <penstock/core/plan.hpp>
#include <penstock/core/projection.hpp>
#include <penstock/order/order_chain.hpp>
#include <penstock/order/world.hpp>
#include <penstock/source/concepts.hpp>

#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

/// The parts of a plan that a run needs: which stages are which, and where they are.
namespace penstock::inline v0_1 {

namespace detail {

template <class Stages>
struct parts_in;

template <class... Stages>
struct parts_in<light_tuple<Stages...>> {
  static constexpr std::size_t count = sizeof...(Stages);

  /// The index of the first stage of a kind, or `count`.
  template <class Tag>
  static constexpr std::size_t place = [] {
    std::size_t found = count, i = 0;
    ((part_of_kind<Stages, Tag> && found == count ? (found = i, ++i) : ++i), ...);
    return found;
  }();
  static constexpr std::size_t choosing =
      place<filter_tag> < place<flat_map_tag> ? place<filter_tag> : place<flat_map_tag>;
  static constexpr std::size_t batch = place<batch_tag>;
  static constexpr std::size_t cursor = place<cursor_tag>;
  static constexpr std::size_t shard = place<shard_tag>;
  static constexpr std::size_t packs = place<pack_tag>;

  template <class Tag>
  static constexpr bool has = place<Tag> != count;
  /// The type of the first stage of a kind, or `Otherwise`.
  template <class Tag, class Otherwise>
  using first = type_at<place<Tag>, light_tuple<Stages..., Otherwise>>;
};

/// A stage whose seed may be the plan's, such as `shuffle`: `with_plan_seed(seed)` is the stage with that
/// one.
template <class Stage>
concept takes_plan_seed = requires(const Stage& s) { s.with_plan_seed(std::uint64_t{}); };

/// Appends the order stages at indexes [First, Last) to those already found.
template <std::size_t First, std::size_t Last, class... Stages, class... Found>
auto orders_between(const light_tuple<Stages...>& stages, std::uint64_t plan_seed,
                    light_tuple<Found...> found = {}) {
  if constexpr (First == Last || First >= sizeof...(Stages)) {
    return found;
  } else if constexpr (part_of_kind<type_at<First, light_tuple<Stages...>>, order_tag>) {
    const auto& stage = at<First>(stages);
    const auto after = [&](const auto& one) {
      return orders_between<First + 1, Last>(stages, plan_seed,
                                             join(std::move(found), make_light_tuple(one)));
    };
    if constexpr (takes_plan_seed<decltype(stage)>)
      return after(stage.with_plan_seed(plan_seed));
    else
      return after(stage);
  } else {
    return orders_between<First + 1, Last>(stages, plan_seed, std::move(found));
  }
}

template <class... Stages>
auto chain_of_orders(order_input in, const light_tuple<Stages...>& orders) {
  return orders.apply([&](const auto&... each) { return make_order_chain(std::move(in), each...); });
}

/// The behaviour of a plan without `bad_samples`.
struct bad_samples_are_fatal {
  static constexpr bool tolerates = false, replaces = false;
};

template <class Orders>
inline constexpr bool any_wants_places = false;
template <class... Stages>
inline constexpr bool any_wants_places<light_tuple<Stages...>> = (place_wanting<Stages> || ...);

/// Appends a text to a list; out of line, because a plan has many.
void add_text(std::vector<std::string>& all, std::string_view one);
/// The description of a source as a state stores it: shortened, because a list of files may be long.
[[nodiscard]] std::string word_of_data(std::string words);

/// A stage that contributes to the fingerprint of the sequence.
template <class Stage>
concept fingerprinted_stage = requires(const Stage& s, fingerprint& h) { s.fingerprint(h); };
/// A stage that contributes its name to the fingerprint, because it chooses or makes samples.
template <class Stage>
concept choosing_stage = part_of_kind<Stage, filter_tag> || part_of_kind<Stage, flat_map_tag>;

/// Calls f<draws, element>(stage) for each stage.
template <class Context, class F>
void each_stage(const F&) {}
template <class Context, class F, class Stage, class... Rest>
void each_stage(const F& f, const Stage& stage, const Rest&... rest) {
  f.template operator()<random_stage<Stage, Context>, typename Context::element>(stage);
  each_stage<typename fold_context<Context, Stage>::type>(f, rest...);
}

std::uint64_t stream_address_of(const auto& stage) {
  if constexpr (requires { stage.stream_address(); })
    return stage.stream_address();
  else
    return 0;
}

}  // namespace detail

/// The name of a stage in messages and reports.
template <class Stage>
std::string text_of_stage(const Stage& stage) {
  if constexpr (described_part<Stage>)
    return stage.describe();
  else if constexpr (named_part<Stage>)
    return std::string(Stage::stage_name);
  else
    return "stage";
}

/// The facts about a plan's type that a run needs.
template <class Plan>
struct plan_parts {
  using stages = typename Plan::stages_type;
  using in = detail::parts_in<stages>;
  using element = std::remove_cvref_t<typename Plan::element>;
  static constexpr auto facts = Plan::context::facts;
  static constexpr bool forward = facts.forward;
  static constexpr bool batched = facts.batched;
  static constexpr bool decided = facts.decided;
  /// Whether a stage after `batch` works on whole batches.
  static constexpr bool maps_batches = in::template has<batch_map_tag>;
  static constexpr bool has_cursor = facts.cursor;
  static constexpr bool has_steps = facts.steps;
  /// Whether the rows of batches hold several samples each.
  static constexpr bool packed = facts.packed;
  /// Whether they are packed from samples as they come.
  static constexpr bool packs_online = facts.packs_online;
  /// Whether a bad sample may leave a hole, or be replaced by another sample.
  using bad_samples = typename in::template first<bad_samples_tag, detail::bad_samples_are_fatal>;
  static constexpr bool tolerant = bad_samples::tolerates, replaces = bad_samples::replaces;
  /// Whether batches are written in place, because their slots are known before anything is evaluated;
  /// otherwise samples go through chunks.
  static constexpr bool direct = batched && !decided && !forward;
  /// Samples are dealt to the ranks in turn: a loop without batches or filters over an indexed source.
  static constexpr bool dealt_in_rotation = !batched && !decided && !forward;
  static constexpr bool shard_before_choosing = in::shard < in::choosing;
  static constexpr bool shard_before_cursor = in::shard < in::cursor;
  /// Whether the place of `shard` is part of the order: ranks mix samples, or choose among their own.
  static constexpr bool mixes_own = has_cursor && shard_before_cursor;
  static constexpr bool chooses_own = decided && shard_before_choosing;
  static constexpr std::size_t first_orders_end = in::batch < in::choosing ? in::batch : in::choosing;
};

/// The order chain from the last order stage before batch and filters down to the source; over a forward
/// source, an empty chain.
template <class Plan>
auto make_sample_orders(const Plan& p) {
  using parts = plan_parts<Plan>;
  if constexpr (parts::forward) {
    return order_chain<>({}, {});
  } else {
    auto orders = detail::orders_between<0, parts::first_orders_end>(p.stages(), *options_of(p).seed);
    order_input in{p.source().size(), p.source().starts()};
    if constexpr (detail::any_wants_places<decltype(orders)> &&
                  !renumbering_source<typename Plan::source_type>)
      in.places.reset(new source_places(p.source().fingerprint(), in.size));
    return detail::chain_of_orders(std::move(in), orders);
  }
}
template <class Plan>
using sample_orders_of = decltype(make_sample_orders(std::declval<const Plan&>()));

/// The world recorded by a plan's `shard`.
template <class Plan>
world world_of(const Plan& p) {
  using in = typename plan_parts<Plan>::in;
  if constexpr (in::template has<shard_tag>)
    return detail::at<in::shard>(p.stages()).share;
  else
    return world{};
}

/// The run options set by a plan's annotations, wherever they are.
template <class Plan>
run_options options_of(const Plan& p) {
  using in = typename plan_parts<Plan>::in;
  run_options options;
  std::uint64_t first_seed = 0;
  bool seeded = false;
  std::size_t place = 0;
  const auto one = [&]<class Stage>(const Stage& stage) {
    if constexpr (part_of_kind<Stage, annotation_tag>) stage.apply(options, place > in::batch);
    if constexpr (part_of_kind<Stage, order_tag> && seeding_part<Stage>) {
      if (!seeded) first_seed = stage.plan_seed();
      seeded = true;
    }
    ++place;
  };
  p.stages().apply([&](const auto&... stages) { (one(stages), ...); });
  if (!options.seed) options.seed = first_seed;
  return options;
}

/// A fingerprint of everything that determines the sequence of samples: orders, seeds, filters and global
/// batch, but not workers, depth or device.
template <class Plan>
std::uint64_t sequence_fingerprint(const Plan& p) {
  using in = typename plan_parts<Plan>::in;
  class fingerprint h;
  const std::uint64_t seed = *options_of(p).seed;
  const auto one = [&]<class Stage>(const Stage& stage) {
    if constexpr (detail::takes_plan_seed<Stage>)
      stage.with_plan_seed(seed).fingerprint(h);
    else if constexpr (detail::fingerprinted_stage<Stage>)
      stage.fingerprint(h);
    else if constexpr (detail::choosing_stage<Stage>)
      h.add(std::string_view(Stage::stage_name));
  };
  p.stages().apply([&](const auto&... stages) { (one(stages), ...); });
  if constexpr (ordered_source<typename Plan::source_type>) h.add(p.source().sequence_fingerprint());
  h.add(seed);
  using parts = plan_parts<Plan>;
  if constexpr (parts::mixes_own || parts::chooses_own) h.add(parts::mixes_own, parts::chooses_own);
  // A state counts rows of the current chunk, so a restored run must treat bad samples the same way.
  if constexpr (!parts::direct && parts::tolerant && (parts::replaces || in::template has<flat_map_tag>))
    h.add("bad_samples", parts::replaces);
  if constexpr (in::template has<batch_tag> && !parts::facts.uneven)
    h.add(detail::at<in::batch>(p.stages()).global_size(world_of(p).size));
  return h.value();
}

/// A fingerprint of the stages that draw random numbers: how many there are, and their keys; 0 if there are
/// none. It does not affect which samples are delivered.
template <class Plan>
std::uint64_t random_fingerprint(const Plan& p) {
  class fingerprint h;
  const std::uint64_t none = h.value();
  if constexpr (randomised_source<typename Plan::source_type>)
    if (const std::uint64_t inner = p.source().random_fingerprint(); inner != 0) h.add("source", inner);
  p.stages().apply([&](const auto&... stages) {
    detail::each_stage<detail::context_of<typename Plan::source_type>>(
        [&]<bool Draws, class Element, class Stage>(const Stage& stage) {
          if constexpr (Draws) h.add(part_of_kind<Stage, batch_map_tag>, detail::stream_address_of(stage));
          if constexpr (Draws && requires { Stage::template streams<Element>; })
            if (constexpr auto streams = Stage::template streams<Element>; streams > 1)
              h.add("streams", streams);
        },
        stages...);
  });
  return h.value() == none ? 0 : h.value();
}

/// Both fingerprints in words, for the error message of a state that does not fit: the data, and each stage
/// that contributes.
template <class Plan>
std::vector<std::string> sequence_words(const Plan& p) {
  using parts = plan_parts<Plan>;
  const std::uint64_t seed = *options_of(p).seed;
  std::vector<std::string> words;
  detail::add_text(words, detail::word_of_data(p.source().describe()));
  if constexpr (ordered_source_in_words<typename Plan::source_type>)
    detail::add_text(words, detail::word_of_data(p.source().sequence_text()));
  const auto one = [&]<bool Draws, class Element, class Stage>(const Stage& stage) {
    if constexpr (part_of_kind<Stage, shard_tag>) {
      if (parts::mixes_own || parts::chooses_own) detail::add_text(words, "shard");
    } else if constexpr (part_of_kind<Stage, batch_tag> && !uneven_batch<Stage>) {
      detail::add_text(words, detail::text({"batch of ", stage.global_size(world_of(p).size),
                                            " in all, tail ", to_string(stage.at_end)}));
    } else if constexpr (Draws) {
      const std::uint64_t key = detail::stream_address_of(stage);
      detail::add_text(words, detail::as_utf8(text_of_stage(stage)) + " with random numbers" +
                                  (key == 0 ? std::string() : " of key " + std::to_string(key)));
    } else if constexpr (detail::takes_plan_seed<Stage>) {
      detail::add_text(words, detail::as_utf8(text_of_stage(stage.with_plan_seed(seed))));
    } else if constexpr (detail::fingerprinted_stage<Stage> || detail::choosing_stage<Stage>) {
      detail::add_text(words, detail::as_utf8(text_of_stage(stage)));
    }
  };
  p.stages().apply([&](const auto&... stages) {
    detail::each_stage<detail::context_of<typename Plan::source_type>>(one, stages...);
  });
  detail::add_text(words, detail::text({"seed(", seed, ')'}));
  return words;
}

namespace detail {

template <class Element>
constexpr projection first_uses(const light_tuple<>*, const projection& behind) {
  return behind;
}
template <class Element, class Stage, class... Rest>
constexpr projection first_uses(const light_tuple<Stage, Rest...>*, const projection& behind) {
  if constexpr (projecting_stage<Stage, Element>)
    return Stage::template uses<Element>();
  else if constexpr (value_stage<Stage>)
    return {};
  else
    return first_uses<Element>(static_cast<const light_tuple<Rest...>*>(nullptr), behind);
}

}  // namespace detail

/// The fields of its source's samples that a plan uses, derived from its type.
///
/// The first value stage decides: `fields<"jpg", "cls">` and `decode<field<"jpg", jpeg>>` of an open sample
/// use the fields that they name; any other stage uses everything. If no stage looks at the sample, the
/// result is `behind`, the use of the plan's samples: everything, unless the plan is joined with others.
template <class Plan>
[[nodiscard]] constexpr projection projection_of(const projection& behind = {}) {
  return detail::first_uses<typename Plan::source_type::element>(
      static_cast<const typename Plan::stages_type*>(nullptr), behind);
}

/// Connects the source of a plan and tells it which fields the plan uses.
template <class Plan>
[[nodiscard]] auto connect_source_of(const Plan& p, const projection& behind = {}) {
  return connect_source(p.source(), projection_of<Plan>(behind));
}

namespace detail {

/// The first difference between two lists of `sequence_words`: "it has X where this plan has Y". With
/// `same_data`, a different description of the data is not a difference.
[[nodiscard, gnu::cold]] std::string first_difference(std::span<const std::string> theirs,
                                                      std::span<const std::string> ours, bool same_data);

}  // namespace detail

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/evaluation/parts.ipp>
#endif
