// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/split.hpp>

#include <penstock/core/message.hpp>
#include <penstock/order/detail/places.hpp>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE split_order::split_order(const order_input& in, double fraction, std::uint64_t seed,
                                         bool rest) {
  detail::check_finite(in, "split");
  // The smaller part is the chosen one, so that at most every second position is chosen.
  const std::uint64_t part = detail::floor_of_product(in.size, fraction);
  const bool few = part <= in.size / 2;
  made_ = {0, detail::spread_choice(in.size, few ? part : in.size - part, seed), few != rest};
  size_ = rest ? in.size - part : part;
  starts_ = detail::starts_behind(in.starts, [this](std::uint64_t p) { return kept_before(p); });
  places_ = detail::places_behind(in.places, made_);
}

PENSTOCK_INLINE position_range split_order::reach(position_range after) const noexcept {
  return {bind(after.first.epoch)(after.first.index), bind(after.last.epoch)(after.last.index)};
}

PENSTOCK_INLINE std::optional<position> split_order::position_of(position upstream) const noexcept {
  if (upstream.index >= made_.choice.size() || made_.choice.is_chosen(upstream.index) != made_.chosen)
    return std::nullopt;
  return position{upstream.epoch, kept_before(upstream.index)};
}

PENSTOCK_INLINE std::uint64_t split_order::kept_before(std::uint64_t p) const noexcept {
  const std::uint64_t chosen = made_.choice.chosen_before(p);
  return made_.chosen ? chosen : p - chosen;
}

PENSTOCK_INLINE split_stage::split_stage(double fraction, std::uint64_t seed, bool rest)
    : fraction_(detail::checked_fraction(fraction, "split")), seed_(seed), rest_(rest) {}

PENSTOCK_INLINE std::string split_stage::describe() const {
  return detail::text(
      {"split(", detail::fraction_text(fraction_), ", seed ", seed_, rest_ ? ").complement()" : ")"});
}

}  // namespace penstock::inline v0_1
