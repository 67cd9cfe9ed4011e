// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/any_count.hpp>
#include <penstock/core/collate.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/pipe.hpp>
#include <penstock/core/shape_class.hpp>
#include <penstock/order/tail.hpp>

#include <tuple>
#include <type_traits>

namespace penstock::inline v0_1 {

namespace mistakes {

struct two_batches : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: batch after batch; a pipeline cuts batches once, write one batch(n) with the "
                  "size you want");
  }
};
struct batch_after_copy : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: batch after pin_and_copy; samples are collated before they are copied, write "
                  "batch(n) | pin_and_copy");
  }
};
struct discovered_without_collate : about_element {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: batch cannot stack values whose length is known only after decoding; write "
                  "batch(n, ragged) or batch(n, pad_to_longest)");
  }
};
struct open_sample_in_batch : about_element {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: batch needs to know the fields of a sample; write fields<\"jpg\", \"cls\"> or "
                  "decode<field<...>> before it");
  }
};
struct not_batchable : about_element {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: batch stacks numbers, arrays, texts, bytes and records of these, and what arrives here is "
        "none of them; write map(f) before it. This error names its type, in arrives_here<...>");
  }
};

struct eight_lengths : about_element {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: batch adds a dimension in front of an array, and this one already has eight, "
                  "the maximum; give it fewer in a map(f) before batch");
  }
};
struct channels_first_of_other : about_element {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: channels_first is for arrays of (height, width, channels), and a field that it applies "
        "to has another number of dimensions; write collate<\"image\">(channels_first) for the "
        "field that has them");
  }
};
struct pitched_scalar : about_element {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: pitched lays out the rows of arrays, and a field that it applies to is a single "
                  "value; write collate<\"image\">(pitched<64>) for the field that has rows");
  }
};

struct padded_scalar : about_element {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: pad_to_largest pads arrays, and a field that it is given to is a single value; "
                  "write collate<\"image\">(pad_to_largest) for the field that has images");
  }
};
struct fill_of_other_type : about_element {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: pad_to_largest_with<value> fills with a value that the numbers of a field "
                  "cannot hold; write one that they can, as pad_to_largest_with<255> for bytes");
  }
};

}  // namespace mistakes

namespace detail {

template <class Policy, class Element>
inline constexpr bool finds_its_field = true;
template <class Name, class Policy, class Element>
inline constexpr bool finds_its_field<field_policy<Name, Policy>, Element> = has_field<Element, Name>;

/// What may follow the size in `batch(size, ...)`.
template <class T>
inline constexpr bool is_batch_option = std::is_same_v<T, tail> || is_policy<T>;
template <class Name, class Policy>
inline constexpr bool is_batch_option<field_policy<Name, Policy>> = is_policy<Policy>;

template <class... Options>
inline constexpr bool repeats_an_option =
    (is_batch_option<Options> && ...) &&
    ((int{std::is_same_v<Options, tail>} + ... + 0) > 1 || (int{is_policy<Options>} + ... + 0) > 1);

/// The size of a whole step, over all ranks.
[[nodiscard]] std::uint64_t batch_size_of_all(std::uint64_t size, bool global, std::uint64_t ranks);
[[nodiscard]] std::string batch_text(std::uint64_t size, tail at_end, bool global);
/// Returns the size, or throws if a batch cannot have it.
[[nodiscard]] inline std::uint64_t checked_batch_size(std::uint64_t size, std::string_view stage) {
  if (size == 0)
    throw error(errc::argument, {stage, "(0) holds no sample; give it at least 1"}).in_stage("batch");
  return size;
}

template <class... Options>
constexpr void check_batch_options() {
  static_assert(
      (is_batch_option<Options> && ...),
      "penstock: this is not an option of batch; give it tail::keep, tail::drop or tail::pad, and stack, "
      "ragged, pad_to_longest, pad_to_largest, channels_first or pitched<bytes>, or "
      "collate<\"name\">(...) for one field");
  static_assert(
      !repeats_an_option<Options...>,
      "penstock: batch takes one tail policy and one of stack, ragged, pad_to_longest, pad_to_largest, "
      "channels_first and pitched; write collate<\"name\">(...) for fields that differ");
}

/// What the stages that cut batches share: how fields are collated, and the mistakes in that.
template <class... Policies>
struct collating {
  template <class Name>
  using policy = typename policy_for<Name, Policies...>::type;
  /// Whether a policy was chosen for a field, by name or for all.
  template <class Name>
  static constexpr bool chosen = is_chosen<Name, Policies...>;

  template <class Context>
  static consteval auto diagnose() {
    using element = std::remove_cvref_t<typename Context::element>;
    using collated = typename batch_behind<collating, typename Context::columns>::type;
    constexpr bool fields_found = (finds_its_field<Policies, element> && ...);
    if constexpr (Context::facts.copied)
      return mistakes::batch_after_copy{};
    else if constexpr (Context::facts.batched)
      return mistakes::two_batches{};
    else if constexpr (any_record<element> && !fields_found)
      return mistakes::no_such_field{};
    else if constexpr (!fields_found && is_right<decltype(diagnose_element<collated, element>())>)
      return mistakes::no_such_field{};
    else
      return diagnose_element<collated, element>();
  }

 private:
  /// Whether a policy was meant for this field, and not for all.
  template <class Name>
  static constexpr bool given =
      std::is_void_v<Name> || !std::is_void_v<typename own_policy<Name, Policies...>::type>;
  template <class Collated, class Name, class V>
  static consteval auto diagnose_field() {
    using how = typename Collated::template policy<Name>;
    constexpr shape_class shape = shape_class_of<V>;
    if constexpr (shape == shape_class::none && (open_sample<V> || owned_sample<V>))
      return mistakes::open_sample_in_batch{};
    else if constexpr (shape == shape_class::none)
      return mistakes::not_batchable{};
    else if constexpr (shape == shape_class::discovered && stacks<how>)
      return mistakes::discovered_without_collate{};
    else if constexpr (value_rank<V> == static_cast<int>(extents::max_rank))
      return mistakes::eight_lengths{};
    else if constexpr (pads_all<how> && value_rank<V> == 0 && given<Name>)
      return mistakes::padded_scalar{};
    else if constexpr (shape != shape_class::fixed && !fill_fits<how, typename stored<V>::type>)
      return mistakes::fill_of_other_type{};
    else if constexpr (!takes_rank<how>(value_rank<V>) && has_gaps<how>)
      return mistakes::pitched_scalar{};
    else if constexpr (!takes_rank<how>(value_rank<V>))
      return mistakes::channels_first_of_other{};
    else
      return mistakes::none{};
  }
  template <class Collated, class V>
  static consteval auto diagnose_element() {
    return diagnose_field<Collated, void, V>();
  }
  template <class Collated, any_record R>
  static consteval auto diagnose_element() {
    return diagnose_fields<Collated, R>(std::make_index_sequence<R::size>{});
  }
  template <class Collated, class R, std::size_t... Is>
  static consteval auto diagnose_fields(std::index_sequence<Is...>) {
    return
        typename first_mistake<decltype(diagnose_field<Collated, typename R::template field_at<Is>::name_type,
                                                       std::tuple_element_t<Is, R>>())...>::type{};
  }
};

}  // namespace detail

/// Cuts the sequence into batches of `size` samples for this rank and collates each field. Made by
/// `batch(size, options...)`; `global_batch(size, options...)` gives the size over all ranks.
///
/// Options, in any order: the tail policy (`tail::keep` by default, `tail::drop`, `tail::pad`), one collate
/// policy for all fields (`stack` by default, `pad_to_longest`, `pad_to_largest`, `ragged`,
/// `channels_first`, `pitched<bytes>`), and `collate<"name">(policy)` for single fields.
///
/// `channels_first` transposes images of (height, width, channels) on their way to the slot: the column is
/// dense, of shape (slots, channels, height, width). `pad_to_largest` puts images of unequal sizes in one
/// block of the largest height and width, and keeps their sizes. Under `pitched<bytes>` each row starts at a
/// multiple of that many bytes, and the field is a `strided_view`; gaps are zero, and are copied to a device
/// with the rest.
///
/// Batches are cut by position, before evaluation: global step s holds positions [s * size * world, (s + 1) *
/// size * world), and a bad sample never pulls a later one forward. Samples are written where they will be
/// used: stacked fields are not copied after decoding. Keeps all five guarantees. Unequal shapes under
/// `stack` are `errc::shape` at the position; under `bad_samples`, samples without the most frequent shape
/// are bad.
///
/// `global_batch(G)`: global step s holds positions [s * G, (s + 1) * G) on any number of ranks from 1 to G,
/// whether or not it divides G; the ranks' parts differ by at most one sample. Use it for runs that may
/// resume on another number of ranks. `batch(b)` has the same global steps wherever b * world is the same.
///
/// More than G ranks are `errc::argument` when you open the plan; so is, over a source that can only be read
/// forward, a number of ranks that does not divide G.
///
///     auto labels = samples | decode<field<"cls", integer>>;
///     auto both = samples | decode<field<"txt", text>, field<"cls", integer>> |
///                 batch(64, collate<"txt">(ragged));
///     auto elastic = labels | shard(world::from_environment()) | global_batch(4096);
template <class... Policies>
struct batch_stage : detail::collating<Policies...> {
  using penstock_part = batch_tag;
  static constexpr std::string_view stage_name = "batch";

  std::uint64_t size = 1;
  tail at_end = tail::keep;
  bool global = false;  ///< `size` counts the samples of all ranks together

  /// Samples of a whole global step, over all ranks. Throws if some rank would have none.
  [[nodiscard]] std::uint64_t global_size(std::uint64_t ranks) const {
    return detail::batch_size_of_all(size, global, ranks);
  }
  /// Samples of a rank's whole batch where samples are dealt in turn.
  [[nodiscard]] std::uint64_t dealt_size(std::uint64_t rank, std::uint64_t ranks) const {
    return (global_size(ranks) - rank - 1) / ranks + 1;
  }

  [[nodiscard]] std::string describe() const { return detail::batch_text(size, at_end, global); }
  void fingerprint(auto& h) const { h.add("batch", at_end); }
};

namespace detail {

template <class... Policies>
struct batch_builder {
  std::uint64_t size;
  tail at_end = tail::keep;
  bool global = false;

  [[nodiscard]] auto with(tail t) const { return batch_builder{size, t, global}; }
  template <class Policy>
  [[nodiscard]] auto with(Policy) const {
    return batch_builder<Policies..., Policy>{size, at_end, global};
  }
  [[nodiscard]] auto done() const { return batch_stage<Policies...>{{}, size, at_end, global}; }
};

auto build_batch(auto builder) { return builder.done(); }
template <class Builder, class Option, class... Rest>
auto build_batch(Builder builder, Option option, Rest... rest) {
  return build_batch(builder.with(option), rest...);
}

}  // namespace detail

template <class... Options>
[[nodiscard]] auto batch(any_count size, Options... options) {
  detail::check_batch_options<Options...>();
  return detail::build_batch(detail::batch_builder<>{detail::checked_batch_size(size.of("batch"), "batch")},
                             options...);
}

/// A batch of `size` samples over all ranks, with the options of `batch`.
template <class... Options>
[[nodiscard]] auto global_batch(any_count size, Options... options) {
  detail::check_batch_options<Options...>();
  const std::uint64_t checked = detail::checked_batch_size(size.of("global_batch"), "global_batch");
  return detail::build_batch(detail::batch_builder<>{checked, tail::keep, true}, options...);
}

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/stage/batch.ipp>
#endif
