// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/mistake.hpp>
#include <penstock/core/pipe.hpp>
#include <penstock/order/packing.hpp>

namespace penstock::inline v0_1 {

namespace mistakes {

struct deal_by_without_pack : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: deal_by deals the rows of pack to ranks, and there are none here; write "
                  "pack<\"tokens\">(length, 4096) | deal_by() | batch(n), without filter before it");
  }
};
struct deal_by_online : about_expression {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: deal_by deals the rows of all ranks, and without lengths each rank packs rows of "
        "its own; give pack lengths, as pack<\"tokens\">(length, 4096) | deal_by() | batch(n)");
  }
};
struct deal_by_after_batch : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: deal_by decides which rows a rank's batch has; write it between pack and batch");
  }
};

}  // namespace mistakes

/// Which rank gets which rows of a step; made by `deal_by`.
struct deal_by_stage {
  using penstock_part = row_tag;
  static constexpr std::string_view stage_name = "deal_by";

  work_weights work;

  void take_part(packed_facts& facts) const { facts.rows.dealt_by = work; }
  [[nodiscard]] std::string describe() const {
    return detail::text({"deal_by(", work.linear, " n + ", work.quadratic, " n^2)"});
  }
  template <class Context>
  static consteval auto diagnose() {
    if constexpr (Context::facts.batched)
      return mistakes::deal_by_after_batch{};
    else if constexpr (!Context::facts.packed)
      return mistakes::deal_by_without_pack{};
    else if constexpr (Context::facts.packs_online)
      return mistakes::deal_by_online{};
    else
      return mistakes::none{};
  }
};

/// Deals the rows of each step so that ranks have equal work: `pack<"tokens">(length, 4096) | deal_by() |
/// batch(8)`.
///
/// The work of a document of n tokens is `linear` n + `quadratic` n^2, since attention is within documents;
/// see `work_weights`. Every rank gets equally many rows of the step, chosen so that the largest sum of work
/// is as small as can be had quickly. All ranks compute the same; nothing is sent. The rows of a step stay
/// the same. A last step whose rows are fewer than the ranks' shares gives every rank equally many, and some
/// of them a row of padding, unless it is dropped.
/// Kind: row. Keeps all five guarantees. Cost: a sort of a step's rows, once per step on each rank.
///
///     auto loader = texts | shuffle | shard(rank, world_size) | pack<"tokens">(length, 4096) |
///                   deal_by({.linear = 2048, .quadratic = 1}) | batch(8);
[[nodiscard]] inline deal_by_stage deal_by(const work_weights& work = {}) { return {work}; }

}  // namespace penstock::inline v0_1
