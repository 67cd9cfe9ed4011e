// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/pack.hpp>
#include <penstock/core/part.hpp>
#include <penstock/core/random.hpp>
#include <penstock/evaluation/parts.hpp>
#include <penstock/evaluation/stage_chain.hpp>
#include <penstock/observe/concepts.hpp>
#include <penstock/run/engine/tuning/worker_counts.hpp>
#include <penstock/run/engine/workers/observers.hpp>
#include <penstock/run/feed/placement.hpp>
#include <penstock/run/mapping/mapped_columns.hpp>
#include <penstock/stage/batch_columns.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <type_traits>

namespace penstock::inline v0_1 {

namespace detail {

/// How many `map_batch` stages there are.
template <class Stages>
inline constexpr std::size_t maps_among = 0;
template <class... Stages>
inline constexpr std::size_t maps_among<pack<Stages...>> =
    (std::size_t{part_of_kind<Stages, batch_map_tag>} + ... + std::size_t{0});

}  // namespace detail

/// The `map_batch` stages of a plan: calls their functions with a batch whose columns are in order.
///
/// The caller must be the batch's only user. Cost: the calls, inlined, and two clock reads for each.
template <class Plan>
class batch_maps<Plan, true> {
  using parts = plan_parts<Plan>;
  using stages = typename parts::stages;

 public:
  static constexpr std::size_t count = detail::maps_among<stages>;
  /// What each stage cost, in order.
  using costs = std::array<stage_cost, count>;

  batch_maps(const Plan& p, std::uint64_t seed) : plan_(&p), seed_(seed), rank_(world_of(p).rank) {}

  /// Stores a failure in the block, at the batch's first position; an `error` is given the stage's name.
  template <class Block>
  void keep(Block& b, const batch_rows& batch, costs& spent) const noexcept {
    try {
      call_all(b, batch, spent);
    } catch (...) {
      // padding has no position: the step's first one says which batch it is
      b.fail_at(batch.first, {b.epoch, batch.valid != 0 ? b.index(batch.first) : b.step_index()}, {});
    }
  }
  /// Like `keep`, but in a worker and for the only batch of a block; reports to observers and the watchdog.
  /// `stages_before`: the source and value stages, which come first in the counters.
  template <class Block>
  void in_worker(Block& b, costs& spent, worker_counts& counts, const run_watch& watch, std::size_t worker,
                 std::size_t stages_before) const noexcept {
    const batch_rows& batch = b.batches.front();
    if (batch.valid != 0) counts.begin_run(b.index(batch.first), batch.valid);
    const costs before = spent;
    run_event e{detail::now_ns()};
    keep(b, batch, spent);
    counts.end_run();
    e.what = activity::stage;
    e.batch = batch.delivered.index;
    e.epoch = batch.delivered.epoch;
    for (std::size_t i = 0; i < count; ++i, e.begin_ns = e.end_ns) {
      const std::uint64_t took = spent[i].nanoseconds - before[i].nanoseconds;
      e.end_ns = e.begin_ns + took;
      e.stage = static_cast<std::uint32_t>(stages_before + i);
      counts.add_busy(took);
      watch.worker(worker, e);
    }
  }

 private:
  template <class Block>
  void call_all(Block& b, const batch_rows& batch, costs& spent) const {
    if constexpr (makes_columns<Block>) b.columns.clear_returned();
    if (batch.slots == 0) return;
    const auto first = static_cast<std::size_t>(batch.first), slots = static_cast<std::size_t>(batch.slots);
    detail::batch_facts facts{slots, static_cast<std::size_t>(batch.valid), 0,
                              static_cast<std::size_t>(batch.global), batch.delivered};
    if constexpr (parts::tolerant) mark_holes(b, batch, facts);
    using collated = detail::batch_place<typename parts::element, detail::type_at<parts::in::batch, stages>>;
    go<collated, parts::in::batch + 1, 0, 0, 0>(
        b, b.columns.template edit<detail::views_in<collated>>(first, slots), facts, spent);
  }
  template <class Block>
  static constexpr bool makes_columns = requires(Block& b) { b.columns.clear_returned(); };

  template <class Block>
  static void mark_holes(const Block& b, const batch_rows& batch, detail::batch_facts& facts) {
    facts.holes = b.bad.holes(batch.first, batch.slots);
    if (facts.holes == 0) return;
    facts.mask.assign(facts.size, 0);
    for (std::size_t i = 0; i < facts.valid; ++i) facts.mask[i] = 1;
    for (const auto& one : b.bad.all())
      if (one.hole && one.row >= batch.first && one.row < batch.first + batch.slots)
        facts.mask[static_cast<std::size_t>(one.row - batch.first)] = 0;
  }

  /// Starts at stage I, which is number `Map` among the `map_batch` stages; `Drawn` of them before it draw
  /// random numbers, and `Made` have returned columns.
  template <class Place, std::size_t I, std::size_t Map, std::size_t Drawn, std::size_t Made, class Block,
            class Views>
  void go(Block& b, const Views& views, const detail::batch_facts& facts, costs& spent) const {
    if constexpr (I < stages::size) {
      using stage_type = detail::type_at<I, stages>;
      if constexpr (part_of_kind<stage_type, batch_map_tag>) {
        constexpr bool returns = stage_type::template returns<Views>;
        constexpr std::size_t drawn = Drawn + (stage_type::template uses_random<Views> ? 1 : 0);
        const auto& stage = detail::at<I>(plan_->stages());
        batch_columns<Views> columns(views, facts);
        rng random(seed_, facts.place.epoch, facts.place.index, stage.stream(Drawn, rank_));
        const std::uint64_t begin = timed::now();
        const auto done = [&] {
          spent[Map].nanoseconds += timed::now() - begin;
          spent[Map].timed += facts.valid;
        };
        if constexpr (returns) {
          using next = detail::batch_place<typename Place::element,
                                           typename stage_type::template columns_after<Place>>;
          auto& made = b.columns.template returned<Made>();
          made.assign(call(stage, columns, random));
          done();
          go<next, I + 1, Map + 1, drawn, Made + 1>(b, made.edit(), facts, spent);
        } else {
          call(stage, columns, random);
          done();
          go<Place, I + 1, Map + 1, drawn, Made>(b, views, facts, spent);
        }
      } else {
        go<Place, I + 1, Map, Drawn, Made>(b, views, facts, spent);
      }
    }
  }

  template <class Stage, class Views>
  static decltype(auto) call(const Stage& stage, batch_columns<Views>& columns,
                             [[maybe_unused]] rng& random) {
    try {
      if constexpr (Stage::template uses_random<Views>)
        return stage.function(columns, random);
      else
        return stage.function(columns);
    } catch (...) {
      detail::rethrow_in_stage(Stage::stage_name);
    }
  }

  const Plan* plan_;
  std::uint64_t seed_, rank_;
};

}  // namespace penstock::inline v0_1
