// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/any_count.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/mistake.hpp>
#include <penstock/core/pipe.hpp>
#include <penstock/order/packing.hpp>

namespace penstock::inline v0_1 {

namespace mistakes {

struct context_parallel_without_pack : about_expression {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: context_parallel takes a part of each sample in the rows of pack, and there are "
        "none here; write pack<\"tokens\">(length, 4096) | context_parallel(size, rank) | batch(n)");
  }
};

}  // namespace mistakes

/// Which part of each sample is here; made by `context_parallel`.
struct context_parallel_stage {
  using penstock_part = row_tag;
  static constexpr std::string_view stage_name = "context_parallel";

  std::uint32_t size = 1, rank = 0;

  void take_part(packed_facts& facts) const {
    facts.slices = size;
    facts.slice = rank;
  }
  [[nodiscard]] std::string describe() const {
    return detail::text({"context_parallel(", size, ", ", rank, ")"});
  }
  template <class Context>
  static consteval auto diagnose() {
    if constexpr (!Context::facts.packed || Context::facts.batched)
      return mistakes::context_parallel_without_pack{};
    else
      return mistakes::none{};
  }
};

/// Gives this process its part of each row, where a row is divided among `size` processes: of every sample,
/// whose places are cut into 2 `size` equal chunks, chunk `rank` and chunk 2 `size` - 1 - `rank`, so that
/// causal attention is equal work on all of them. `pack<"tokens">(length, 4096, {.align = 2 * size}) |
/// context_parallel(size, rank) | batch(8)`.
///
/// Out: rows of capacity / `size` tokens. `position_ids()` are those in the samples, `labels()` the next
/// tokens even at the end of a chunk, `cu_seqlens()` those of the parts, and `get<"tokens">(b).whole()` has
/// those of the whole rows. All `size` processes have the same `shard(rank, world)`.
/// Kind: row. Keeps all five guarantees. Costs what is copied: samples are read whole.
/// Throws `error(errc::argument)` for a rank that is not below size, and, when the plan is opened, for an
/// `.align` or a capacity of `pack` that cannot be cut.
/// Source: Megatron-LM, megatron/core/utils.py, get_batch_on_this_cp_rank; Transformer Engine,
/// thd_get_partitioned_indices.
///
///     auto loader = texts | shard(rank, world_size) | pack<"tokens">(length, 4096, {.align = 8}) |
///                   context_parallel(4, 1) | batch(8);
[[nodiscard]] inline context_parallel_stage context_parallel(any_count size, any_count rank) {
  const std::uint64_t of = size.of("context_parallel"), which = rank.of("context_parallel");
  if (of == 0 || of > 65'536 || which >= of)
    throw error(errc::argument, {"context_parallel(", of, ", ", which,
                                 ") is no part of a row; ranks are below the size, which is 1 to 65,536"})
        .in_stage("context_parallel");
  return {static_cast<std::uint32_t>(of), static_cast<std::uint32_t>(which)};
}

}  // namespace penstock::inline v0_1
