// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/inspection/consumed.hpp>

#include <penstock/core/position.hpp>
#include <penstock/inspection/detail/bit_set.hpp>
#include <penstock/order/cut.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE void visit_consumed(plan_view plan, std::uint64_t last_epoch, std::uint64_t last_step,
                                    const consumed_listener& found) {
  const cut& c = plan.mine;
  if (plan.samples == 0) return;
  // One bit set for each source epoch that the plan's epoch at hand reaches.
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
        found.tell(found.who, consumed_range{of, first, count});
      });
    }
    epochs.clear();
  };
  // Behind a shuffle_buffer: which position of an epoch comes when.
  std::vector<std::uint64_t> drawn, ordinals;
  std::optional<std::uint64_t> drawn_of;
  std::vector<position> samples;
  for (std::uint64_t epoch = 0; epoch <= last_epoch; ++epoch) {
    const std::uint64_t steps = epoch < last_epoch ? plan.steps : last_step;
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
        ordinals.push_back(plan.buffer ? drawn[static_cast<std::size_t>(i)] : i);
      samples.resize(ordinals.size());
      plan.positions_at(ordinals, samples.data());
      for (const position& sample : samples) set_of(sample.epoch).set_alone(sample.index);
    }
    flush();
  }
}

}  // namespace penstock::inline v0_1::detail
