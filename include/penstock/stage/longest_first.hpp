// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/mistake.hpp>
#include <penstock/core/options.hpp>
#include <penstock/core/pipe.hpp>
#include <penstock/stage/batch_by.hpp>

#include <utility>

namespace penstock::inline v0_1 {

namespace mistakes {

struct longest_first_without_batch : about_expression {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: longest_first looks for long samples in the batches that are in flight, and there are "
        "none here; write it behind batch(n)");
  }
};
struct longest_first_without_positions : about_expression {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: longest_first begins samples of later batches early, and after filter, unbatch, pack "
        "without lengths or over a source that is read forward it is unknown which samples those are; leave "
        "it out, or choose samples with subset");
  }
};
struct longest_first_without_numbers : about_expression {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: longest_first knows samples by their numbers, and those of mix, or of joined sources with "
        "orders, change from epoch to epoch; leave it out");
  }
};

}  // namespace mistakes

namespace detail {

/// Times of samples, learned in the run.
struct learned_costs {
  static constexpr bool learns = true;
  [[nodiscard]] static std::string describe() { return "learned"; }
};
/// Bytes of samples, as the source knows them.
struct costs_in_bytes {
  static constexpr bool in_bytes = true;
  [[nodiscard]] static std::string describe() { return "by bytes"; }
};

}  // namespace detail

/// Begins samples that take far longer than others before their turn, so that their batch does not wait for
/// them.
/// Made by `longest_first`, `longest_first(by_bytes)` or `longest_first(cost)`; an annotation, behind
/// `batch`.
///
/// Samples of the batches in flight (`prefetch(n)` after `batch`) that take at least 4 times as long as the
/// mean are begun as much earlier as the other workers need to arrive at them, and not earlier: who begins a
/// long sample too soon keeps a worker from the batch that is wanted next. Batches come in their order, with
/// the same bytes, states, bad samples and errors as without it, on any number of workers. It does what it
/// can if a sample takes less time than the workers take for what is in flight; where one takes longer,
/// `report` says which number to raise. With fewer than two workers it does nothing.
///
/// How long samples take:
///   longest_first            the run learns it: whatever took at least 4 times as long as the mean is remembered
///                            by its number in the source, for the epochs to come, up to an eighth of the samples
///                            and 2^18 of them (2 MiB). Nothing is known in the first epoch, nor after a
///                            restart. Samples that take less than a microsecond on average are not looked at.
///   longest_first(by_bytes)  as many bytes as the source says that they have: only where it knows, as it does
///                            of samples in shards.
///   longest_first(cost)      `cost` as `batch_by` takes it: a function of a sample's number in the source, or
///                            values of all samples, as a `derived_index`, `durations()` of utterances or a
///                            `sample_list`. Unsigned numbers, of which only the ratio to their mean matters. What
///                            it throws counts as 0.
/// Keeps all five guarantees. Cost: the position in the source of each sample, and its cost, are looked up
/// once more, in the thread that asks for batches; where the run learns, the clock is read once per sample.
/// No allocation per sample.
/// Up to 32 samples of a batch are begun early. Throws `error(errc::argument)` when you open the plan for
/// values that do not belong to the source, and for bytes of a source that does not know them.
///
/// MinatoLoader (EuroSys 2026) lets short samples overtake long ones instead, which changes the sequence.
///
///     auto loader = samples | decode<field<"txt", text>> | shuffle(seed(7)) | batch(32, ragged) | prefetch(16) |
///                   longest_first;
template <class Cost>
struct longest_first_stage {
  using penstock_part = annotation_tag;
  static constexpr std::string_view stage_name = "longest_first";
  static constexpr bool begins_longest_first = true;

  [[no_unique_address]] Cost cost{};

  void apply(run_options&, bool /*after_batch*/) const {}
  [[nodiscard]] std::string describe() const {
    const std::string by = cost.describe();
    return by.empty() ? std::string(stage_name) : detail::text({stage_name, "(", by, ")"});
  }
  template <class Context>
  static consteval auto diagnose() {
    if constexpr (Context::facts.forward || Context::facts.decided)
      return mistakes::longest_first_without_positions{};
    else if constexpr (!Context::facts.batched)
      return mistakes::longest_first_without_batch{};
    else if constexpr (Context::facts.renumbers)
      return mistakes::longest_first_without_numbers{};
    else
      return mistakes::none{};
  }
};

/// Makes `longest_first_stage`; by itself it is the one that learns.
struct longest_first_fn : longest_first_stage<detail::learned_costs> {
  [[nodiscard]] constexpr auto operator()(detail::costs_in_bytes) const {
    return longest_first_stage<detail::costs_in_bytes>{};
  }
  template <class Cost>
  [[nodiscard]] constexpr auto operator()(Cost given) const {
    static_assert(detail::gives_costs<Cost>(),
                  "penstock: longest_first's cost is a function that can be called when const with the "
                  "number of a sample, "
                  "a std::uint64_t, or values for every sample, and returns an unsigned number");
    return longest_first_stage<detail::costs<Cost>>{{std::move(given)}};
  }
};

inline constexpr longest_first_fn longest_first{};

/// Samples take as long as they have bytes: `longest_first(by_bytes)`.
inline constexpr detail::costs_in_bytes by_bytes{};

}  // namespace penstock::inline v0_1
