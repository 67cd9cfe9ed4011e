// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/weighted.hpp>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE weighted_order::weighted_order(shared<const detail::running_weights> weights,
                                               std::uint64_t seed, std::uint64_t num_samples)
    : seed_(seed), size_(num_samples), weights_(std::move(weights)) {
  if (size_ > maximum) {
    throw error(errc::argument,
                {size_, " num_samples are more than 2^62; write repeat() for epochs without end"})
        .in_stage("weighted");
  }
}

PENSTOCK_INLINE std::optional<position> weighted_order::position_of(position upstream) const {
  if (upstream.index >= weights_->size()) return std::nullopt;
  const bound drawn = bind(upstream.epoch);
  for (std::uint64_t i = 0; i < size_; ++i)
    if (drawn(i).index == upstream.index) return position{upstream.epoch, i};
  return std::nullopt;
}

}  // namespace penstock::inline v0_1
