// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/inspection/detail/plan_view.hpp>

#include <algorithm>
#include <numeric>

namespace penstock::inline v0_1 {

/// A run of samples of the source that were delivered: `count` samples from number `first`.
struct consumed_range {
  std::uint64_t epoch = 0;  ///< the source's epoch
  std::uint64_t first = 0, count = 0;
};

namespace detail {

/// For batches without a fixed number of samples: calls `f(first, ordinals)`, in pieces, with the
/// ordinals of the samples that all ranks received in an epoch, up to the state if it is in that epoch.
void for_each_uneven(const plan_view& plan, std::uint64_t epoch, const state& where, auto f) {
  std::vector<std::uint64_t> ordinals;
  const any_epoch_cut any = plan.uneven.on(where.world, 0).bind(epoch);
  const bool last = epoch == where.epoch;
  if (last && (where.step > any.steps() || (!any.packs() && where.ordinal > plan.positions)))
    throw error(errc::state, "this state is not of this plan: an epoch has fewer steps");
  if (any.lists()) {
    for (std::uint64_t rank = 0; rank < where.world; ++rank) {
      const any_epoch_cut mine = plan.uneven.on(where.world, rank).bind(epoch);
      for (std::uint64_t step = 0; step < (last ? where.step : mine.steps()); ++step) {
        ordinals.clear();
        mine.list(step, ordinals);
        if (!ordinals.empty()) f(ordinals);
      }
    }
    return;
  }
  const std::uint64_t end = last ? where.ordinal : any.before(any.steps());
  for (std::uint64_t first = 0; first < end; first += ordinals.size()) {
    ordinals.resize(static_cast<std::size_t>(std::min<std::uint64_t>(end - first, 65'536)));
    std::iota(ordinals.begin(), ordinals.end(), first);
    f(ordinals);
  }
}

/// Reports the runs of all samples delivered before a state.
void visit_consumed(plan_view plan, const state& where, auto& found) {
  const cut& c = plan.mine;
  const std::uint64_t last_epoch = where.epoch;
  if (plan.samples == 0) return;
  // One bit set for each source epoch that the plan's current epoch covers.
  std::vector<std::pair<std::uint64_t, bit_set>> epochs;
  const auto set_of = [&](std::uint64_t epoch) -> bit_set& {
    for (auto& known : epochs)
      if (known.first == epoch) return known.second;
    return epochs.emplace_back(epoch, bit_set(plan.samples)).second;
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
  // After a shuffle_buffer: the order in which an epoch's positions appear.
  std::vector<std::uint64_t> drawn, ordinals;
  std::optional<std::uint64_t> drawn_of;
  std::vector<position> samples;
  const auto deliver = [&](const std::vector<std::uint64_t>& at) {
    samples.resize(at.size());
    plan.positions_at(at, samples.data());
    for (const position& sample : samples) set_of(sample.epoch).set_alone(sample.index);
  };
  for (std::uint64_t epoch = 0; epoch <= last_epoch; ++epoch) {
    if (plan.uneven.any()) {
      for_each_uneven(plan, epoch, where, [&](const std::vector<std::uint64_t>& at) {
        const auto [low, high] = std::minmax_element(at.begin(), at.end());
        plan.bind(epoch, *low, *high + 1);
        deliver(at);
      });
      flush();
      continue;
    }
    const std::uint64_t steps = epoch < last_epoch ? plan.steps : where.step;
    for (std::uint64_t step = 0; step < steps; ++step) {
      position at;
      plan.upstream(epoch, {&step, 1}, &at);
      const std::uint64_t first = at.index * c.global, count = c.count(at.index);
      if (!plan.buffer) {
        plan.bind(at.epoch, first, first + count);
      } else if (drawn_of != at.epoch) {
        drawn = plan.drawn(at.epoch);
        drawn_of = at.epoch;
        plan.bind(at.epoch, 0, c.size);
      }
      ordinals.clear();
      for (std::uint64_t i = first; i < first + count; ++i)
        ordinals.push_back(plan.buffer ? drawn[detail::to_size(i)] : i);
      deliver(ordinals);
    }
    flush();
  }
}

}  // namespace detail

/// Calls `found(consumed_range)` for exactly the samples that were delivered before a state, to all ranks
/// together, in ascending order within each source epoch: the data that went into the model.
///
/// Reads no sample; works for the plans that `prove` accepts. Includes bad samples that were skipped, but
/// not the samples that stood in for replaced ones. A sample that `pack` split counts once a piece was
/// delivered. Uses one bit of memory per sample for each source epoch within an epoch of the plan, and 8
/// bytes per position after `shuffle_buffer`. Throws `error(errc::state)` if the state does not belong to
/// this plan; the plan may omit random stages.
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
  detail::viewed_plan<plan_type> viewed(p);
  detail::visit_consumed(viewed.view(), where, found);
}

}  // namespace penstock::inline v0_1
