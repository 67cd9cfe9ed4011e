// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/mistake.hpp>
#include <penstock/order/concepts.hpp>
#include <penstock/order/cost_cut.hpp>
#include <penstock/order/order_chain.hpp>
#include <penstock/order/step_cut.hpp>
#include <penstock/stage/batch.hpp>

#include <concepts>
#include <numeric>
#include <utility>

namespace penstock::inline v0_1 {

namespace mistakes {

struct batch_by_without_positions : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: batch_by cuts an epoch before samples are read, and after filter, unbatch, "
                  "shuffle_buffer or a source that is read forward it is unknown which samples come; choose "
                  "samples with "
                  "subset and mix them with shuffle, or write batch(n)");
  }
};

struct batch_by_without_numbers : about_expression {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: batch_by looks up costs by sample number, and the numbers of mix, or of joined sources "
        "with orders, change from epoch to epoch; write batch(n)");
  }
};

}  // namespace mistakes

namespace detail {

/// What the stages have in common that cut batches by a rule.
template <class Rule, class... Policies>
struct cutting_by_rule : collating<Policies...> {
  using penstock_part = batch_tag;
  static constexpr bool uneven_steps = true;

  Rule rule;

  /// The cut of a plan that has these orders.
  template <class Orders>
    requires cut_rule<Rule, Orders>
  [[nodiscard]] auto cut_of(const Orders& orders, const cut_input& in) const {
    return rule.make(orders, in);
  }
  [[nodiscard]] std::string describe() const { return rule.describe(); }
};

}  // namespace detail

/// Cuts the sequence into batches by a rule instead of a fixed size, and collates each field as `batch` does.
/// Made by `batch_by(cost, limit, options...)`, or by `batch_by(rule, options...)` with your own `cut_rule`.
///
/// `batch_by(cost, limit)`: fills each batch, in the order of the epoch, while the costs of its samples sum
/// to at most `limit`: batches of at most so many tokens or pixels. `cost` is a function of a sample's number
/// in the source, callable when const from any thread, or values as `subset` takes them: a `derived_index`, a
/// `sample_list`. A cost is an unsigned number.
///
/// With `pad_to_longest` or `pad_to_largest`, for all fields or for one, padding counts: in such a batch
/// every sample costs as much as the most costly one, so that the slots of `batch_by(length, 2048,
/// pad_to_longest)` hold 2048 tokens at most, padding included. With `pad_to_multiple<n>` costs are rounded
/// up first, as lengths are. `pad_to_largest` pads height and width one by one: give it the
/// square of the longer side, or count pixels where images of a batch are of one orientation.
///
/// Ranks: an epoch is cut into the same batches on any number of ranks. Rank r of W takes batches r, r + W,
/// r + 2 W, ..., so a global step is the next W batches. No batch exceeds the limit, and all ranks have the
/// same number of steps. If the last step has fewer batches than ranks, `tail::keep` gives the other ranks an
/// empty batch, and `tail::drop` leaves the step out. You can resume on another number of ranks if one of
/// their steps starts at the sample where the state stands; otherwise the state is refused. So here `elastic`
/// means that the batches stay the same: fewer ranks take them in more steps. The lanes of a shuffle do not
/// decide which rank gets which batch.
///
/// To find where batches begin, a run makes one pass over the positions of an epoch, which calls `cost` once
/// for each and reads no sample: when it first needs a batch of that epoch, in the requesting thread;
/// stopping the run ends the pass. Opening a run also asks for the cost of 64 samples, to choose the sizes of
/// its pieces. 8 bytes per batch; the sample path is that of `batch`. Epochs may have different numbers of
/// steps, so `take`, `skip`, `repeat` and `steps(n)` cannot follow it.
/// Kind: batch. Keeps all five guarantees. The library cannot see what `cost` computes; a state therefore
/// also records how many samples it stands after, and is refused if no step starts there.
/// Bad samples: a substitute of `bad_samples::replace` may cost more than the sample it replaces, so the
/// batch may then exceed the limit. A `bad_samples::fraction` applies to an equal share of the epoch,
/// positions divided by ranks, however many samples a rank gets.
/// Options: those of `batch`, except `tail::pad`. Throws `error(errc::argument)` for a limit of 0, or of 2^63
/// or more (which is what a negative number becomes), for an epoch of 2^40 or more positions, and for a
/// sample that costs more than the limit: when you open the plan, or, if the sample is only in a later epoch,
/// in place of its step. What `cost` throws is thrown there too; an `error` gets the sample's position and
/// number. `cost` is not called again for that epoch.
///
///     auto texts = samples | decode<field<"txt", text>>;
///     auto length = derive(
///         texts, "length", [](const auto& s) { return std::uint64_t{get<"txt">(s).size()}; }, "derived");
///     auto loader = texts | shuffle(seed(7)) | shard(rank, world_size) | batch_by(length, 16'384, ragged);
template <class Rule, class... Policies>
struct batch_by_stage : detail::cutting_by_rule<Rule, Policies...> {
  static constexpr std::string_view stage_name = "batch_by";

  void fingerprint(auto& h) const {
    h.add(stage_name);
    this->rule.fingerprint(h);
  }
  template <class Context>
  static consteval auto diagnose() {
    if constexpr (Context::facts.decided || Context::facts.forward || Context::facts.cursor)
      return mistakes::batch_by_without_positions{};
    else if constexpr (Context::facts.renumbers)
      return mistakes::batch_by_without_numbers{};
    else
      return detail::collating<Policies...>::template diagnose<Context>();
  }
};

namespace detail {

template <class Cost>
consteval bool gives_costs() {
  if constexpr (sample_values<Cost>)
    return std::unsigned_integral<typename Cost::value_type>;
  else if constexpr (std::invocable<const Cost&, std::uint64_t>)
    return std::unsigned_integral<std::remove_cvref_t<std::invoke_result_t<const Cost&, std::uint64_t>>>;
  else
    return false;
}

/// Whether the first of these can be a limit.
template <class...>
inline constexpr bool begins_with_limit = false;
template <class First, class... Rest>
inline constexpr bool begins_with_limit<First, Rest...> = std::convertible_to<First, std::uint64_t>;

template <class Rule>
concept rule_with_tail = requires(Rule& r) { r.at_end = tail::keep; };

/// A rule that counts padding if it is told to.
template <class Rule>
concept rule_with_padding = requires(Rule& r) { r.padded = true; };

/// A rule that counts the multiple to which lengths are padded if it is told of it.
template <class Rule>
concept rule_with_multiple = requires(Rule& r) { r.multiple = std::uint64_t{1}; };

inline void check_batch_by_tail(tail at_end, std::string_view stage) {
  if (at_end == tail::pad)
    throw error(errc::argument,
                {stage, " has no fixed number of samples to pad to; give it tail::keep or tail::drop"})
        .in_stage(stage);
}

/// The options after a rule; a tail policy is passed on to it.
template <template <class, class...> class Stage, class Rule, class... Policies>
struct batch_by_builder {
  Rule rule;

  [[nodiscard]] auto with([[maybe_unused]] tail t) const {
    batch_by_builder made = *this;
    if constexpr (rule_with_tail<Rule>) {  // otherwise `batch_by` has reported the mistake
      check_batch_by_tail(t, Stage<Rule>::stage_name);
      made.rule.at_end = t;
    }
    return made;
  }
  template <class Policy>
    requires(!std::same_as<Policy, tail>)
  [[nodiscard]] auto with(Policy) const {
    batch_by_builder<Stage, Rule, Policies..., Policy> made{rule};
    if constexpr (pads<Policy> && rule_with_padding<Rule>) made.rule.padded = true;
    if constexpr (padding_multiple<Policy> != 0 && rule_with_multiple<Rule>)
      made.rule.multiple = std::lcm(made.rule.multiple, std::uint64_t{padding_multiple<Policy>});
    return made;
  }
  [[nodiscard]] auto done() const { return Stage<Rule, Policies...>{{{}, rule}}; }
};

}  // namespace detail

/// Cuts batches by the costs of samples; see `batch_by_stage`.
template <class Cost, class... Options>
[[nodiscard]] auto batch_by(Cost cost, any_count limit, Options... options) {
  static_assert(
      detail::gives_costs<Cost>(),
      "penstock: batch_by's cost is a function that can be called when const with the number of a sample, "
      "a std::uint64_t, or values for every sample, and returns an unsigned number");
  detail::check_batch_options<Options...>();
  return detail::build_batch(
      detail::batch_by_builder<batch_by_stage, cost_rule<Cost>>{{{std::move(cost)}, limit.of("batch_by")}},
      options...);
}
/// Cuts batches by your own rule; see `cut_rule`. The rule handles its tail itself.
template <cut_rule<order_chain<>> Rule, class... Policies>
[[nodiscard]] auto batch_by(Rule rule, Policies... policies) {
  static_assert(detail::rule_with_tail<Rule> || !(std::same_as<Policies, tail> || ...),
                "penstock: this rule has no tail; let it handle the last step itself, or give it a member "
                "at_end of type tail for batch_by to set");
  detail::check_batch_options<Policies...>();
  return detail::build_batch(detail::batch_by_builder<batch_by_stage, Rule>{std::move(rule)}, policies...);
}
/// Any other arguments are a mistake, which gets a sentence.
template <class First, class... Rest>
  requires(!cut_rule<First, order_chain<>> && !detail::begins_with_limit<Rest...>)
[[nodiscard]] auto batch_by(First, Rest...) {
  static_assert(never<First>,
                "penstock: write batch_by(cost, limit), with a limit for the sum of the costs of a batch, or "
                "batch_by(rule) with a cut_rule; for batches of n samples write batch(n)");
  return batch(1);  // so that this is the only error
}

}  // namespace penstock::inline v0_1
