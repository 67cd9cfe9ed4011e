// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/pack.hpp>
#include <penstock/core/position.hpp>
#include <penstock/evaluation/parts.hpp>
#include <penstock/order/cut.hpp>
#include <penstock/order/step_cut.hpp>
#include <penstock/run/feed/selection.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

/// What a feed knows of its plan, in numbers, so that the feed itself need not be a template.
namespace penstock::inline v0_1 {

/// The order stages after `batch`, type-erased: called once per step.
class step_orders {
 public:
  step_orders() = default;
  template <class Orders>
  explicit step_orders(Orders orders)
      : size_(orders.size()), sample_at_([](const void* chain, position at) {
          return static_cast<const Orders*>(chain)->sample_at(at);
        }) {
    owner_ = shared<const void>(new const Orders(std::move(orders)));
  }

  /// Whether there are any such stages.
  [[nodiscard]] bool any() const noexcept { return owner_ != nullptr; }
  /// Steps per epoch after them.
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  /// Maps a step after them to the step before them.
  [[nodiscard]] position sample_at(position after) const { return sample_at_(owner_.get(), after); }

 private:
  std::uint64_t size_ = 0;
  position (*sample_at_)(const void*, position) = nullptr;
  shared<const void> owner_;
};

/// What a feed knows of its plan.
struct feed_facts {
  /// The cut into steps. With `by_sample`, a step is one sample of each rank.
  cut mine;
  /// Order stages after `batch`; none with `by_sample`.
  step_orders after_batch;
  /// The number given to `steps(n)`.
  std::optional<std::uint64_t> fixed_steps;
  /// With `by_sample` and `steps(n)`: batches of an epoch, including those that a skip leaves out.
  std::uint64_t max_steps = 0;
  /// With `by_sample`: samples of a chunk, at most.
  std::uint64_t chunk = 1;
  /// Samples of the first chunks; 0: as many as of all.
  std::uint64_t first_chunk = 0;
  /// Chunks of full size begin where batches do.
  bool chunks_are_batches = false;
  /// A `shuffle_buffer` over positions: its capacity and seed.
  std::uint64_t buffer_capacity = 1, buffer_seed = 0;
  bool has_buffer = false;
  bool shard_before_buffer = false;
  /// A step is one sample of each rank, and a block holds a run of them: after filters, over forward
  /// sources, and in loops without batches.
  bool by_sample = false;
  /// The number of samples is unknown.
  bool forward = false;
  /// A loop without batches or filters: the total delivered to all ranks determines where each rank stands.
  bool dealt_in_rotation = false;
  /// The cut, if batches have no fixed number of samples. Of `mine`, only size, world and rank apply then.
  any_step_cut uneven;
};

/// The facts of a plan whose sample orders exist. `chunk`: samples per chunk, if there are chunks.
template <class Plan>
feed_facts make_feed_facts(const Plan& p, [[maybe_unused]] const sample_orders_of<Plan>& orders,
                           std::uint64_t chunk = 1) {
  using parts = plan_parts<Plan>;
  using in = typename parts::in;
  feed_facts made;
  made.chunk = chunk;
  made.by_sample = !parts::direct;
  made.forward = parts::forward;
  made.dealt_in_rotation = !parts::batched && !parts::decided && !parts::forward;
  if constexpr (in::template has<steps_tag>)
    made.fixed_steps = detail::at<in::template place<steps_tag>>(p.stages()).count;
  if constexpr (parts::has_cursor && !parts::forward) {
    const auto& buffer = detail::at<in::cursor>(p.stages());
    made.has_buffer = true;
    made.shard_before_buffer = parts::shard_before_cursor;
    made.buffer_capacity = buffer.capacity;
    made.buffer_seed = buffer.seed;
  }
  if constexpr (parts::direct) {
    const auto& batch = detail::at<in::batch>(p.stages());
    const world share = world_of(p);
    if constexpr (parts::facts.uneven) {
      made.mine = {.size = orders.size(), .world = share.size, .rank = share.rank};
      made.mine.check();
      made.uneven = any_step_cut(batch.cut_of(orders, cut_input{.world = share.size,
                                                                .rank = share.rank,
                                                                .dataset = p.source().fingerprint(),
                                                                .samples = p.source().size()}));
    } else {
      made.mine = {.size = orders.size(),
                   .global = batch.global_size(share.size),
                   .world = share.size,
                   .rank = share.rank,
                   .lanes = orders.lanes(),
                   .policy = batch.at_end};
      made.mine.check();
      auto after = detail::chain_of_orders(
          {made.mine.steps(), nullptr},
          detail::orders_between<in::batch, in::count>(p.stages(), *options_of(p).seed));
      if constexpr (!std::is_same_v<decltype(after), order_chain<>>)
        made.after_batch = step_orders(std::move(after));
    }
  } else {
    if (made.fixed_steps)
      made.max_steps = detail::select_between<in::batch, in::count>(p.stages()).reaching(*made.fixed_steps);
    if constexpr (!parts::forward) {
      const world share = parts::shard_before_choosing ? world_of(p) : world{};
      made.mine = {.size = orders.size(),
                   .global = share.size,
                   .world = share.size,
                   .rank = share.rank,
                   // otherwise every world-th position
                   .lanes = parts::batched || parts::decided ? orders.lanes() : 1,
                   .policy = tail::pad};  // the last positions go to the first ranks, one each
      made.mine.check();
    }
  }
  return made;
}

}  // namespace penstock::inline v0_1
