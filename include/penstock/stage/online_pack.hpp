// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/collate.hpp>
#include <penstock/core/guarantee.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/pipe.hpp>
#include <penstock/order/packing.hpp>
#include <penstock/stage/detail/pack_fields.hpp>

#include <string>
#include <string_view>
#include <type_traits>

namespace penstock::inline v0_1 {

namespace detail {

template <class Stage>
concept row_stage = part_of_kind<Stage, row_tag>;

}  // namespace detail

/// Puts samples into rows as they come, a window of them at a time: `pack<"tokens">(capacity, options)`, see
/// `pack`.
template <class... Names>
struct online_pack_stage : detail::packing_fields<Names...> {
  using penstock_part = pack_tag;
  using blame = mistakes::lost_by_online_pack;
  static constexpr std::string_view stage_name = "pack";
  static constexpr bool packs_online = true;

  std::uint64_t capacity = 0;
  pack_options options;

  template <class Batch, class Name>
  using policy = detail::policy_beside_rows<online_pack_stage, online_packed_policy, Batch, Name>;

  [[nodiscard]] static constexpr guarantee_set loses(place) {
    return guarantee_set(guarantee::indexed, guarantee::lockstep, guarantee::elastic);
  }
  /// What a plan that has these stages tells those who fill its rows.
  template <class Stages>
  [[nodiscard]] packed_facts facts_of(const Stages& stages) const {
    packed_facts facts{capacity, options, {}, {}};
    const auto one = [&]<class Stage>(const Stage& stage) {
      if constexpr (detail::row_stage<Stage>) stage.take_part(facts);
    };
    stages.apply([&](const auto&... each) { (one(each), ...); });
    return facts;
  }
  [[nodiscard]] std::string describe() const {
    return detail::text({"pack(rows of ", capacity, ", ", to_string(options.how), " in windows of ",
                         options.window, " as samples come, overlong ", to_string(options.overlong), ")"});
  }
  void fingerprint(auto& h) const {
    h.add("pack online", capacity, options.how, options.overlong, options.window, options.align,
          options.max_samples);
  }
  template <class Context>
  static consteval auto diagnose() {
    using element = std::remove_cvref_t<typename Context::element>;
    if constexpr (Context::facts.batched)
      return mistakes::pack_after_batch{};
    else if constexpr (Context::facts.packed)
      return mistakes::two_packs{};
    else if constexpr (sizeof...(Names) == 0 && any_record<element>)
      return mistakes::pack_of_no_field{};
    else
      return online_pack_stage::template diagnose_fields<Context>();
  }
};

}  // namespace penstock::inline v0_1
