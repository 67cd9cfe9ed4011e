// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/collate.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/pipe.hpp>
#include <penstock/core/shape_class.hpp>
#include <penstock/core/text.hpp>
#include <penstock/order/tail.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>

namespace penstock::inline v0_1 {

/// Cuts the sequence into batches of `size` samples for this rank and collates each field. Made by
/// `batch(size, options...)`.
///
/// Options, in any order: the tail policy (`tail::keep` by default, `tail::drop`, `tail::pad`), one collate
/// policy for all fields (`stack` by default, `pad_to_longest`, `ragged`), and `collate<"name">(policy)` for
/// single fields.
/// Batches are cut by position, before evaluation: global step s holds positions [s * size * world, (s + 1) *
/// size * world), and a sample that is bad never pulls a later one forward. Samples are written where they
/// will be used: no copy after decoding for stacked fields. Keeps all five guarantees. Unequal shapes under
/// `stack` are `errc::shape` at the position.
///
///     ... | batch(256, tail::drop)         ... | batch(64, ragged)         ... | batch(64, collate<"txt">(ragged))
template <class... Policies>
struct batch_stage {
  using penstock_part = batch_tag;
  static constexpr std::string_view stage_name = "batch";

  std::uint64_t size = 1;
  tail at_end = tail::keep;

  /// The collate policy of a field.
  template <class Name>
  using policy = typename detail::policy_for<Name, Policies...>::type;

  [[nodiscard]] std::string describe() const {
    return detail::text({"batch(", size, ", tail ",
                         (at_end == tail::drop  ? "drop"
                          : at_end == tail::pad ? "pad"
                                                : "keep"),
                         ")"});
  }
  template <class Hash>
  void fingerprint(Hash& h) const {
    h.add("batch", at_end);
  }

  template <class Context>
  static consteval mistake diagnose() {
    return diagnose_element<std::remove_cvref_t<typename Context::element>>();
  }

 private:
  template <class Name, class V>
  static consteval mistake diagnose_field() {
    constexpr shape_class shape = shape_class_of<V>;
    if constexpr (shape == shape_class::none)
      return open_sample<V> || owned_sample<V> ? mistake::open_sample_in_batch : mistake::not_batchable;
    if constexpr (shape == shape_class::discovered && std::is_same_v<policy<Name>, stack_policy>)
      return mistake::discovered_without_collate;
    return mistake::none;
  }
  template <class V>
  static consteval mistake diagnose_element() {
    return diagnose_field<void, V>();
  }
  template <any_record R>
  static consteval mistake diagnose_element() {
    return diagnose_fields<R>(std::make_index_sequence<R::size>{});
  }
  template <class R, std::size_t... Is>
  static consteval mistake diagnose_fields(std::index_sequence<Is...>) {
    mistake found = mistake::none;
    ((found =
          found != mistake::none
              ? found
              : diagnose_field<typename R::template field_at<Is>::name_type, std::tuple_element_t<Is, R>>()),
     ...);
    return found;
  }
};

namespace detail {

template <class... Policies>
struct batch_builder {
  std::uint64_t size;
  tail at_end = tail::keep;

  [[nodiscard]] auto with(tail t) const { return batch_builder{size, t}; }
  template <class Policy>
  [[nodiscard]] auto with(Policy) const {
    return batch_builder<Policies..., Policy>{size, at_end};
  }
  [[nodiscard]] auto done() const { return batch_stage<Policies...>{size, at_end}; }
};

template <class Builder>
auto build_batch(Builder builder) {
  return builder.done();
}
template <class Builder, class Option, class... Rest>
auto build_batch(Builder builder, Option option, Rest... rest) {
  return build_batch(builder.with(option), rest...);
}

}  // namespace detail

template <class... Options>
[[nodiscard]] auto batch(std::uint64_t size, Options... options) {
  if (size == 0)
    throw error(errc::argument, "batch(0) holds no sample; give it at least 1").in_stage("batch");
  return detail::build_batch(detail::batch_builder<>{size}, options...);
}

}  // namespace penstock::inline v0_1
