// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/class_balanced.hpp>

#include <algorithm>
#include <utility>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE class_balanced_order::class_balanced_order(shared<const detail::classes> groups,
                                                           std::uint64_t seed, per_class how)
    : groups_(std::move(groups)),
      seed_(seed),
      each_(how == per_class::largest ? groups_->largest() : groups_->smallest()) {
  if (each_ != 0 && groups_->count() > maximum / each_) {
    throw error(errc::limit, {"an epoch of ", groups_->count(), " classes with ", each_,
                              " samples each is longer than 2^62 positions; write per_class::smallest"})
        .in_stage("class_balanced");
  }
  size_ = groups_->count() * each_;
}

PENSTOCK_INLINE class_balanced_order::bound class_balanced_order::bind(std::uint64_t epoch) const {
  if (each_ != 0 && epoch > ~std::uint64_t{0} / each_ - 1) {
    throw error(errc::argument, {"epoch ", epoch, " of ", each_, " samples per class is beyond 64 bits"})
        .in_stage("class_balanced");
  }
  return {epoch, seed_, each_, mixed(epoch), detail::divider(std::max<std::uint64_t>(1, each_)), groups_};
}

PENSTOCK_INLINE std::optional<position> class_balanced_order::position_of(position upstream) const {
  const auto found = groups_->find(upstream.index);
  if (!found) return std::nullopt;
  const permutation order_of_all = mixed(upstream.epoch);
  const std::uint64_t all = groups_->size(found->group), first = upstream.epoch * each_;
  std::optional<position> lowest;
  for (std::uint64_t pass = first / all; pass * all < first + each_; ++pass) {
    const permutation order(all, pass_key(seed_, found->group, pass));
    const std::uint64_t number = pass * all + order.inverse(found->member);
    if (number < first || number - first >= each_) continue;
    const std::uint64_t index = order_of_all.inverse(found->group * each_ + (number - first));
    if (!lowest || index < lowest->index) lowest = position{upstream.epoch, index};
  }
  return lowest;
}

}  // namespace penstock::inline v0_1
