// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/inspection/detail/plan_view.hpp>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE void plan_view::upstream(std::uint64_t epoch, std::span<const std::uint64_t> of_steps,
                                         position* found) const {
  feed at = feed_;
  for (std::size_t i = 0; i < of_steps.size(); ++i) {
    at.seek(epoch, of_steps[i]);
    found[i] = at.upstream();
  }
}

PENSTOCK_INLINE resumed_place plan_view::resume(std::uint64_t epoch, std::uint64_t step,
                                                std::uint64_t ranks) const {
  feed before = feed_, after = feed_;
  before.seek(epoch, step);
  state where;
  where.epoch = before.epoch();
  where.step = before.step();
  where.world = ranks;
  if (buffer) {
    before.limit(epoch + 2);
    before.settle();
    where.taken = before.cursor().taken();
    where.given = before.cursor().given();
    where.held.assign(before.cursor().held().begin(), before.cursor().held().end());
  }
  std::string refused(after.wrong_with(where));
  after.seek(where.epoch, where.step);
  return {after.epoch() == before.epoch() && after.step() == before.step() &&
              after.upstream() == before.upstream(),
          std::move(refused)};
}

PENSTOCK_INLINE std::vector<std::uint64_t> plan_view::drawn(std::uint64_t epoch) const {
  position_buffer order = *buffer;
  order.begin(epoch, positions);
  std::vector<std::uint64_t> ordinals(static_cast<std::size_t>(positions));
  for (std::uint64_t& ordinal : ordinals) ordinal = order.next();
  return ordinals;
}

}  // namespace penstock::inline v0_1::detail
