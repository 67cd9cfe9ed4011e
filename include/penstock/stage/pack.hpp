// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/mistake.hpp>
#include <penstock/core/pipe.hpp>
#include <penstock/order/packed_cut.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/batch_by.hpp>
#include <penstock/stage/context_parallel.hpp>
#include <penstock/stage/deal_by.hpp>
#include <penstock/stage/detail/pack_fields.hpp>
#include <penstock/stage/online_pack.hpp>

#include <concepts>
#include <utility>

namespace penstock::inline v0_1 {

/// Puts samples into rows of at most `capacity` tokens, several into each; made by `pack<"tokens">(length,
/// capacity, options)`. `batch(n)` behind it stacks n rows.
template <class Length, class... Names>
struct pack_stage : detail::packing_fields<Names...> {
  using penstock_part = pack_tag;
  static constexpr std::string_view stage_name = "pack";

  detail::costs<Length> length;
  schedule capacity;
  pack_options options;

  template <class Batch, class Name>
  using policy = detail::policy_beside_rows<pack_stage, packed_policy, Batch, Name>;

  /// The cut of a plan that has these orders and stages.
  template <class Orders, class Stages>
  [[nodiscard]] auto cut_of(const Orders& orders, const Stages& stages, const cut_input& in) const {
    length.check(in, stage_name);
    packed_facts facts{capacity, options, {}, length.where()};
    stages.apply([&](const auto&... each) { (take(facts, each, in), ...); });
    return packed_cut<Orders, detail::costs<Length>>(orders, length, std::move(facts), in);
  }
  [[nodiscard]] std::string describe() const {
    const std::string lengths = length.describe();
    std::string all = detail::text({"pack(", lengths, lengths.empty() ? "" : ", "});
    all +=
        capacity.changes() ? std::string("rows that change") : detail::text({"rows of ", capacity.fixed()});
    all += detail::text({", ", to_string(options.how), " in windows of ", options.window, ", overlong ",
                         to_string(options.overlong)});
    if (options.align != 1) all += detail::text({", aligned to ", options.align});
    if (options.max_samples != 0)
      all += detail::text({", at most ", options.max_samples, " samples in a row"});
    return all + ")";
  }
  void fingerprint(auto& h) const {
    h.add("pack", capacity.fixed(), options.how, options.overlong, options.window, options.align,
          options.max_samples);
    length.fingerprint(h);
  }
  template <class Context>
  static consteval auto diagnose() {
    using element = std::remove_cvref_t<typename Context::element>;
    if constexpr (Context::facts.batched)
      return mistakes::pack_after_batch{};
    else if constexpr (Context::facts.packed)
      return mistakes::two_packs{};
    else if constexpr (Context::facts.decided || Context::facts.forward || Context::facts.cursor)
      return mistakes::pack_without_positions{};
    else if constexpr (Context::facts.renumbers)
      return mistakes::pack_without_numbers{};
    else if constexpr (sizeof...(Names) == 0 && any_record<element>)
      return mistakes::none{};  // rows by cost alone
    else
      return pack_stage::template diagnose_fields<Context>();
  }

 private:
  template <class Stage>
  static void take(packed_facts& facts, const Stage& stage, const cut_input& in) {
    if constexpr (part_of_kind<Stage, batch_tag>) {
      (void)stage.global_size(in.world);  // throws if there are too many
      facts.rows.size = stage.size;
      facts.rows.global = stage.global;
      facts.rows.at_end = stage.at_end;
    } else if constexpr (detail::row_stage<Stage>) {
      stage.take_part(facts);
    }
  }
};

/// Puts several samples into each row of a batch: sequences one after another, up to `capacity` tokens, so
/// that little of a row is padding. `pack<"tokens">(length, capacity, options) | batch(n)`.
///
/// In: samples with one or more sequence fields of equal length, named in <>: one-dimensional arrays of
/// numbers. `length` tells how long each sample is, as `batch_by` is told what it costs: a `derived_index`, a
/// `sample_list`, or a function of its number in the source. Samples that are no records are the sequences
/// themselves, `pack(length, 4096)`. Records without a name in <> are put into rows by the sum of `length`,
/// which may be any cost, and no field is laid into a row.
/// Out, from `batch(n)`: `get<"tokens">(b)` is a `packed_view`: (n, capacity) values, with `cu_seqlens()`,
/// `max_seqlen()`, `position_ids()`, `document_ids()`, `mask()` and `labels()`; `labels<"tokens", "mask">(b)`
/// has loss only where a sample's own mask is not 0. Every other field has one value per sample, in the order
/// of `b.packing().documents()`: numbers stacked, arrays ragged unless `collate` says otherwise. `b.size()`
/// is the number of rows; `b.positions()` and `b.keys()` are those of the samples.
///
/// Options: `.how`, by which samples go to rows: `packing::best_fit` (decreasing: the fullest rows),
/// `first_fit`, or `in_order` (rows in the order of the epoch). `.window`: so many samples of the epoch, one
/// after another, are packed together; their rows come in a random order, except with `in_order`.
/// `.overlong`: what becomes of samples that are longer than a row. With `overlong::split` each piece is a
/// document of its own that has its sample's position. `.align`: places of a sample are a multiple of it.
/// `.max_samples` in a row. `.pad`: the value in padding, in the first field named; that of others is 0.
/// `capacity` may be a function of `position`, {epoch, step}, for lengths that grow as a run goes on; each
/// window has the capacity of the step in which it begins, and a step the largest of its windows.
///
/// Which samples share a row is arithmetic on the lengths, before anything is read: it depends neither on
/// workers nor on the number of ranks, and a step of n rows on W ranks has the same rows as one of n W rows.
/// So a run resumes at once, on any number of ranks on which a step begins where the state stands; if
/// `capacity` changes, only in steps of equally many rows, as `global_batch` has them.
/// `deal_by(...)` gives ranks equal work, `context_parallel(size, rank)` a part of every sample.
///
/// Without `length`, `pack<"tokens">(capacity, options) | batch(n)` packs samples as they come, by the
/// lengths that they have then: after `filter`, `unbatch` and `shuffle_buffer`, and over sources that are
/// read forward, where it is unknown before which samples come; elsewhere, where there are no lengths yet. A
/// rank collects `.window` samples and makes the same rows of them that lengths would have given; the last
/// window of a pass over the data has fewer. What a batch has is the same, and so are the options,
/// `context_parallel` and the tail policies; `deal_by`, a capacity that changes and rows by cost need
/// lengths. Keeps `deterministic` and `resumable`; loses `indexed`, `lockstep`, which `steps(n)` restores,
/// and `elastic`: each rank packs what comes to it. `take`, `skip`, `repeat` and `steps(n)` may follow. The
/// first batch waits for a whole window.
/// Costs the memory of a window of samples, and two copies of each value, into the window and from there into
/// its row, by the consumer's thread; a run that resumes within a window reads that window again. Bad samples
/// are left out or replaced before they are packed; fields of unequal length in one sample make it a bad one.
/// With `overlong::refuse` a sample that is too long is an error in place of the batch that its window
/// begins.
///
/// With lengths, a run makes one pass over the lengths of an epoch when it first needs it, as `batch_by`
/// does, and keeps 24 bytes for each window. It only counts their rows: by `best_fit` without `.max_samples`
/// in about half of the time of packing, otherwise by packing them. A window is packed when its rows are due.
/// Kind: pack. Keeps all five guarantees with lengths; epochs may differ in steps, so `take`, `skip`,
/// `repeat` and `steps(n)` cannot follow it.
/// Bad samples, with lengths: under `bad_samples::skip` the places of one are padding. `bad_samples::replace`
/// is refused.
/// Throws `error(errc::argument)` for impossible options when the plan is opened; for a sample that is too
/// long, then or in place of its step; `errc::state` if a sample is not as long as `length` says.
/// Source: H. Ding and others, "Fewer Truncations Improve Language Modeling", ICML 2024.
///
///     auto length = derive(
///         texts, "tokens", [](const auto& s) { return std::uint64_t{get<"tokens">(s).size()}; }, "derived");
///     auto loader = texts | shuffle(seed(7)) | shard(rank, world_size) | pack<"tokens">(length, 4096) | batch(8);
///     auto filtered = texts | filter(is_good) | shard(rank, world_size) | pack<"tokens">(4096) | batch(8) |
///                     steps(1000);
template <fixed_string... Names, class Length, class Capacity>
  requires(!std::same_as<Capacity, pack_options>)
[[nodiscard]] auto pack(Length length, Capacity capacity, const pack_options& options = {}) {
  static_assert(
      detail::gives_costs<Length>(),
      "penstock: pack's length is a function that can be called when const with the number of a sample, a "
      "std::uint64_t, or values for every sample, and gives an unsigned number");
  static_assert(std::invocable<const Capacity&, position> || std::convertible_to<Capacity, any_count>,
                "penstock: the length of pack's rows is a number, or a function of position, {epoch, step}");
  return pack_stage<Length, name_of<Names>...>{{}, {std::move(length)}, std::move(capacity), options};
}

/// The same as samples come.
template <fixed_string... Names, class Capacity>
[[nodiscard]] auto pack(const Capacity& capacity, const pack_options& options = {}) {
  constexpr bool is_number = std::convertible_to<const Capacity&, any_count>;
  static_assert(
      is_number,
      "penstock: pack without lengths packs samples as they come, into rows whose length is a number; write "
      "pack<\"tokens\">(4096), or give it lengths, pack<\"tokens\">(length, capacity), whose capacity may "
      "also be a function of position");
  std::uint64_t rows_of = 1;
  if constexpr (is_number) rows_of = any_count(capacity).of("pack");
  return online_pack_stage<name_of<Names>...>{{}, rows_of, options};
}

}  // namespace penstock::inline v0_1
