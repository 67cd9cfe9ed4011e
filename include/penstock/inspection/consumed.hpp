// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/evaluation/parts.hpp>
#include <penstock/inspection/detail/bit_set.hpp>
#include <penstock/run/feed/feed.hpp>
#include <penstock/run/feed/position_buffer.hpp>
#include <penstock/run/state.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// A run of samples of the source that were delivered: `count` of them from number `first` on.
struct consumed_range {
  std::uint64_t epoch = 0;  ///< of the source
  std::uint64_t first = 0, count = 0;
};

/// Calls `found(consumed_range)` for exactly the samples that were delivered before a state, to all ranks
/// together, in ascending order within each source epoch: which data went into this model.
///
/// Reads no sample; works for the plans of `prove`. A bad sample that was skipped is among them; what stood
/// in for one that was replaced is not.
/// One bit of memory a sample and a source epoch that an epoch of the plan reaches, and 8 bytes a position
/// behind `shuffle_buffer`. Throws `error(errc::state)` where the state is not of this plan.
template <class Source, class... Stages, class Found>
void for_each_consumed(const plan<Source, Stages...>& p, const state& where, Found found) {
  using plan_type = plan<Source, Stages...>;
  using parts = plan_parts<plan_type>;
  static_assert(parts::direct && elastic<plan_type>,
                "penstock: for_each_consumed needs an elastic plan with a batch, without filter, unbatch "
                "or forward source; put shuffle_buffer before shard");
  const bool same_data = where.dataset == p.source().fingerprint();
  if (!same_data || where.sequence != sequence_fingerprint(p)) {
    const std::vector<std::string> words = sequence_words(p);
    std::string why = detail::first_difference(where.plan, words, same_data);
    if (why.empty()) why = detail::first_difference(where.plan, words, false);
    if (why.empty()) why = same_data ? "a stage was changed" : "its data has another fingerprint";
    throw error(errc::state, {"this state is not of this plan: ", why});
  }
  const auto orders = make_sample_orders(p);
  feed at_step(make_feed_facts(p, orders));
  const cut& c = at_step.mine();
  const std::uint64_t samples = p.source().size();
  if (samples == 0) return;
  typename sample_orders_of<plan_type>::binding bound;
  // One bit set for each source epoch that the plan's epoch at hand reaches.
  std::vector<std::pair<std::uint64_t, detail::bit_set>> epochs;
  const auto set_of = [&](std::uint64_t epoch) -> detail::bit_set& {
    for (auto& known : epochs)
      if (known.first == epoch) return known.second;
    return epochs.emplace_back(epoch, detail::bit_set(samples)).second;
  };
  const auto flush = [&] {
    std::sort(epochs.begin(), epochs.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [epoch, delivered] : epochs) {
      const std::uint64_t of = epoch;
      delivered.for_each_run([&](std::uint64_t first, std::uint64_t count) {
        found(consumed_range{of, first, count});
      });
    }
    epochs.clear();
  };
  // Behind a shuffle_buffer: which position of an epoch comes when.
  std::vector<std::uint64_t> drawn;
  std::optional<std::uint64_t> drawn_of;
  [[maybe_unused]] const auto draw = [&](std::uint64_t epoch) {
    if constexpr (parts::has_cursor) {
      const auto& stage = detail::at<parts::in::cursor>(p.stages());
      position_buffer buffer(stage.capacity, stage.seed);
      buffer.begin(epoch, c.size);
      drawn.resize(static_cast<std::size_t>(c.size));
      for (std::uint64_t& index : drawn) index = buffer.next();
      drawn_of = epoch;
    }
  };
  for (std::uint64_t epoch = 0; epoch <= where.epoch; ++epoch) {
    const std::uint64_t steps = epoch < where.epoch ? at_step.steps_per_epoch() : where.step;
    for (std::uint64_t step = 0; step < steps; ++step) {
      at_step.seek(epoch, step);
      const position at = at_step.upstream();
      const std::uint64_t first = at.index * c.global, count = c.count(at.index);
      if constexpr (parts::has_cursor) {
        if (drawn_of != at.epoch) draw(at.epoch);
        orders.rebind(bound, at.epoch, 0, c.size);
      } else {
        orders.rebind(bound, at.epoch, first, first + count);
      }
      for (std::uint64_t i = first; i < first + count; ++i) {
        const position sample = bound(parts::has_cursor ? drawn[static_cast<std::size_t>(i)] : i);
        set_of(sample.epoch).set_alone(sample.index);
      }
    }
    flush();
  }
}

}  // namespace penstock::inline v0_1
