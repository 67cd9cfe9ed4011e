// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/any_count.hpp>
#include <penstock/core/light_tuple.hpp>
#include <penstock/core/mistake.hpp>
#include <penstock/order/concepts.hpp>
#include <penstock/order/world.hpp>

namespace penstock::inline v0_1 {

namespace mistakes {

struct two_shards : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: shard after shard; positions are global and the world is recorded once, "
                  "remove one of them");
  }
};
struct shard_after_batch : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: shard after batch; batches are cut for this rank, write shard(rank, world) "
                  "before batch(n)");
  }
};

}  // namespace mistakes

/// An option of `shard`: groups of `ranks` consecutive ranks get the same batches.
///
/// For models that are split over several processes, and for several processes that share a batch. A state
/// refers to groups, not processes: as long as the global batch stays the same, a resumed run may use a
/// different number of ranks per group or a different number of groups. `world::model_parallel` has groups
/// of other shapes.
struct replicate {
  constexpr explicit replicate(any_count group) : ranks(group.of("replicate")) {}
  std::uint64_t ranks;
};

/// The stage `shard(rank, world_size)`: only records which share of the work belongs to this process.
struct shard_stage {
  using penstock_part = shard_tag;
  static constexpr std::string_view stage_name = "shard";

  [[nodiscard]] std::string describe() const {
    if (share.replicas == 1) return detail::text({"shard(rank ", share.rank, " of ", share.size, ")"});
    return detail::text({"shard(rank ", share.rank, " of ", share.size, ", replica ", share.replica, " of ",
                         share.replicas, ")"});
  }
  /// Adds nothing: the global sequence does not depend on how many ranks share it.
  void fingerprint(auto&) const {}

  template <class Context>
  static consteval auto diagnose() {
    if constexpr (Context::facts.sharded)
      return mistakes::two_shards{};
    else if constexpr (Context::facts.batched)
      return mistakes::shard_after_batch{};
    else
      return mistakes::none{};
  }

  world share;
};

namespace detail {
struct shard_forms {
  [[nodiscard]] shard_stage operator()(any_count rank, any_count world_size,
                                       replicate groups = replicate(1)) const {
    world share;
    share.rank = rank.of("shard");
    share.size = world_size.of("shard");
    share.launcher = "arguments";
    return {share.replicated(groups.ranks)};
  }
  [[nodiscard]] shard_stage operator()(const world& share, replicate groups = replicate(1)) const {
    return {share.replicated(groups.ranks)};
  }
};
struct shard_fn : shard_forms {
  using shard_forms::operator();
  /// A mistake, which gets a sentence.
  template <class... Given>
    requires(!std::invocable<const shard_forms&, Given...>)
  [[nodiscard]] shard_stage operator()(Given&&...) const {
    static_assert(never<light_tuple<Given...>>,
                  "penstock: shard is told which share is ours; write shard(rank, world_size), as in "
                  "shard(0, 4), or shard(world::from_environment())");
    return {};
  }
};
}  // namespace detail

/// Sets this process's share of the work: rank `rank` of `world_size`, or a `world`.
///
/// Positions stay global. Nothing changes until the chain is cut into batches, where each rank takes its
/// slice of every global step: with 2 ranks and `batch(3)`, rank 0 gets samples 0, 1, 2 of the step and rank
/// 1 gets 3, 4, 5. That is why the samples of step s do not depend on the number of ranks, and why a run can
/// resume with a different number.
/// After `filter` or `unbatch`, and over a forward source, a step is not known before its samples are made:
/// its samples are dealt in turn, 0, 2, 4 of a step to rank 0 and 1, 3, 5 to rank 1.
/// With `replicate(r)`, groups of r consecutive ranks get the same share.
/// A sequencer; keeps every guarantee; costs nothing per sample. Throws `error(errc::argument)` if rank is
/// not below world_size, or if r does not divide it.
///
///     auto loader = source | shuffle(seed(7)) | shard(rank, world_size, replicate(2)) | batch(256);
inline constexpr detail::shard_fn shard{};

}  // namespace penstock::inline v0_1
