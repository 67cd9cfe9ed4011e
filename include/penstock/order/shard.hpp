// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/text.hpp>
#include <penstock/order/concepts.hpp>
#include <penstock/order/world.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::inline v0_1 {

/// The stage `shard(rank, world_size)`: only a note of which part of the work is ours.
struct shard_stage {
  using penstock_part = shard_tag;
  static constexpr std::string_view stage_name = "shard";

  [[nodiscard]] std::string describe() const {
    return detail::text({"shard(rank ", part.rank, " of ", part.size, ")"});
  }
  /// Adds nothing: the global sequence does not depend on how many share it.
  template <class Hash>
  void fingerprint(Hash&) const {}

  world part;
};

namespace detail {
struct shard_fn {
  [[nodiscard]] shard_stage operator()(std::uint64_t rank, std::uint64_t world_size) const {
    world part;
    part.rank = rank;
    part.size = world_size;
    part.launcher = "arguments";
    part.check();
    return {part};
  }
  [[nodiscard]] shard_stage operator()(const world& part) const {
    part.check();
    return {part};
  }
};
}  // namespace detail

/// Says which part of the work this process does: rank `rank` of `world_size`, or a `world`.
///
/// Positions stay global: nothing changes until the chain is cut into batches, each rank taking its slice of
/// every global step. That is why the samples of step s do not depend on the number of ranks, and why a run
/// may go on with another number.
/// A sequencer; keeps every guarantee; costs nothing per sample. Throws `error(errc::argument)` when rank is
/// not below world_size.
///
///     auto loader = source | shuffle(7) | shard(world::from_environment()) | batch(256);
inline constexpr detail::shard_fn shard{};

}  // namespace penstock::inline v0_1
