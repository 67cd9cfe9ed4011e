// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/mistake.hpp>
#include <penstock/core/pipe.hpp>
#include <penstock/order/packed_cut.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/batch_by.hpp>
#include <penstock/stage/context_parallel.hpp>
#include <penstock/stage/deal_by.hpp>

#include <concepts>
#include <tuple>
#include <utility>

namespace penstock::inline v0_1 {

namespace mistakes {

struct pack_after_batch : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: pack makes rows of samples, which batch stacks; write pack<\"tokens\">(length, "
                  "4096) | batch(n)");
  }
};
struct two_packs : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: pack after pack; name all fields in one: pack<\"tokens\", \"weights\">(length, "
                  "4096)");
  }
};
struct pack_without_positions : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: pack puts the samples of an epoch into rows before they are read, and after "
                  "filter, unbatch, shuffle_buffer or a source that is read forward it is unknown which "
                  "samples come; choose samples with subset and mix them with shuffle");
  }
};
struct pack_without_numbers : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: pack looks up lengths by sample number, and the numbers of mix, or of joined "
                  "sources with orders, change from epoch to epoch; pack one source");
  }
};
struct pack_of_no_sequence : about_element {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: pack<\"tokens\"> puts sequences one after another, and a field that it names is "
                  "not a one-dimensional array of numbers; name the one that is, and decode it before pack");
  }
};

}  // namespace mistakes

namespace detail {

/// Whether values can stand one after another in a row.
template <class V>
inline constexpr bool is_sequence = [] {
  using value = std::remove_cvref_t<V>;
  if constexpr (shape_class_of<value> == shape_class::none)
    return false;
  else
    return std::is_arithmetic_v<typename stored<value>::type> &&
           (value_rank<value> == 1 || value_rank<value> == -1);
}();

template <class Stage>
concept row_stage = part_of_kind<Stage, row_tag>;

}  // namespace detail

/// Puts samples into rows of at most `capacity` tokens, several into each; made by `pack<"tokens">(length,
/// capacity, options)`. `batch(n)` behind it stacks n rows.
template <class Length, class... Names>
struct pack_stage {
  using penstock_part = pack_tag;
  static constexpr std::string_view stage_name = "pack";

  detail::costs<Length> length;
  detail::row_length capacity;
  pack_options options;

  /// Whether a field's values are put into rows; void: of samples without names.
  template <class Name>
  static constexpr bool packs =
      std::is_void_v<Name> ? sizeof...(Names) == 0 : (std::same_as<Name, Names> || ...);
  using first_name = std::tuple_element_t<0, std::tuple<Names..., void>>;
  /// How a field is collated: fields that are not in rows are ragged unless a policy was chosen for them.
  template <class Batch, class Name>
  using policy = std::conditional_t<
      packs<Name>, packed_policy<sizeof...(Names) == 0 || std::same_as<Name, first_name>>,
      std::conditional_t<Batch::template chosen<Name>, typename Batch::template policy<Name>, ragged_policy>>;

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
    all += capacity.changes() ? std::string("rows that change") : detail::text({"rows of ", capacity.fixed});
    all += detail::text({", ", to_string(options.how), " in windows of ", options.window, ", overlong ",
                         to_string(options.overlong)});
    if (options.align != 1) all += detail::text({", aligned to ", options.align});
    if (options.max_samples != 0)
      all += detail::text({", at most ", options.max_samples, " samples in a row"});
    return all + ")";
  }
  void fingerprint(auto& h) const {
    h.add("pack", capacity.fixed, options.how, options.overlong, options.window, options.align,
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
    else if constexpr (sizeof...(Names) == 0)
      return diagnose_field<element>();
    else if constexpr (!any_record<element> || !(has_field<element, Names> && ...))
      return mistakes::no_such_field{};
    else
      return typename detail::first_mistake<
          decltype(diagnose_field<std::tuple_element_t<element::template index_of<Names>, element>>())...>::
          type{};
  }

 private:
  template <class V>
  static consteval auto diagnose_field() {
    if constexpr (detail::is_sequence<V>)
      return mistakes::none{};
    else
      return mistakes::pack_of_no_sequence{};
  }
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

namespace detail {

template <class Capacity>
row_length row_length_of(Capacity&& capacity) {
  using given = std::remove_cvref_t<Capacity>;
  if constexpr (std::invocable<const given&, position>) {
    row_length made;
    made.function = std::shared_ptr<const given>(new const given(std::forward<Capacity>(capacity)));
    made.at = [](const void* f, position step) -> std::uint64_t {
      return (*static_cast<const given*>(f))(step);
    };
    return made;
  } else {
    return {any_count(capacity).of("pack"), nullptr, nullptr};
  }
}

}  // namespace detail

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
/// A run makes one pass over the lengths of an epoch when it first needs it, as `batch_by` does, and keeps 24
/// bytes for each window; each window is packed once more when its rows are due.
/// Kind: pack. Keeps all five guarantees; epochs may differ in steps, so `take`, `skip`, `repeat` and
/// `steps(n)` cannot follow it.
/// Bad samples: under `bad_samples::skip` the places of one are padding. `bad_samples::replace` is refused.
/// Throws `error(errc::argument)` for impossible options when the plan is opened; for a sample that is too
/// long, then or in place of its step; `errc::state` if a sample is not as long as `length` says.
/// Source: H. Ding and others, "Fewer Truncations Improve Language Modeling", ICML 2024.
///
///     auto length = derive(
///         texts, "tokens", [](const auto& s) { return std::uint64_t{get<"tokens">(s).size()}; }, "derived");
///     auto loader = texts | shuffle(seed(7)) | shard(rank, world_size) | pack<"tokens">(length, 4096) | batch(8);
template <fixed_string... Names, class Length, class Capacity>
[[nodiscard]] auto pack(Length length, Capacity capacity, const pack_options& options = {}) {
  static_assert(
      detail::gives_costs<Length>(),
      "penstock: pack's length is a function that can be called when const with the number of a sample, a "
      "std::uint64_t, or values for every sample, and gives an unsigned number");
  static_assert(std::invocable<const Capacity&, position> || std::convertible_to<Capacity, any_count>,
                "penstock: the length of pack's rows is a number, or a function of position, {epoch, step}");
  return pack_stage<Length, name_of<Names>...>{
      {std::move(length)}, detail::row_length_of(std::move(capacity)), options};
}

}  // namespace penstock::inline v0_1
