// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/fold.hpp>

#include <penstock/core/message.hpp>
#include <penstock/order/detail/places.hpp>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE fold_order::fold_order(const order_input& in, std::uint64_t number, std::uint64_t folds,
                                       std::uint64_t seed, bool rest)
    : upstream_(in.size) {
  detail::check_finite(in, "fold");
  made_ = {0, detail::divider(folds - 1), folds, number, mix64(seed ^ 0x666f6c64u), !rest};
  size_ = kept_before(upstream_);
  starts_ = detail::starts_behind(in.starts, [this](std::uint64_t p) { return kept_before(p); });
  places_ = detail::places_behind(in.places, made_);
}

PENSTOCK_INLINE position_range fold_order::reach(position_range after) const noexcept {
  return {bind(after.first.epoch)(after.first.index), bind(after.last.epoch)(after.last.index)};
}

PENSTOCK_INLINE std::optional<position> fold_order::position_of(position upstream) const noexcept {
  if (upstream.index >= upstream_) return std::nullopt;
  const bool own = made_.own(upstream.index / made_.folds) == upstream.index % made_.folds;
  if (own != made_.chosen) return std::nullopt;
  return position{upstream.epoch, kept_before(upstream.index)};
}

PENSTOCK_INLINE std::uint64_t fold_order::kept_before(std::uint64_t p) const noexcept {
  const std::uint64_t group = p / made_.folds, among = p % made_.folds;
  const std::uint64_t chosen = group + (among != 0 && made_.own(group) < among ? 1 : 0);
  return made_.chosen ? chosen : p - chosen;
}

PENSTOCK_INLINE fold_stage::fold_stage(std::uint64_t number, std::uint64_t folds, std::uint64_t seed,
                                       bool rest)
    : number_(number), folds_(folds), seed_(seed), rest_(rest) {
  if (folds < 2 || folds > max_folds || number >= folds) {
    throw error(errc::argument, {"there is no fold ", number, " of ", folds,
                                 "; write fold(i, folds, seed(7)) with i below folds, and 2 to 2^32 folds"})
        .in_stage(stage_name);
  }
}

PENSTOCK_INLINE std::string fold_stage::describe() const {
  return detail::text({"fold(", number_, " of ", folds_, ", seed ", seed_, rest_ ? ").complement()" : ")"});
}

}  // namespace penstock::inline v0_1
