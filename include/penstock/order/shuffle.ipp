// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/shuffle.hpp>

#include <penstock/core/message.hpp>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE shuffle_order::shuffle_order(const order_input& in, std::uint64_t seed)
    : size_(in.size), seed_(seed) {
  if (size_ >= permutation::max_size) {
    throw error(errc::argument, "an endless order cannot be shuffled; write shuffle before repeat()")
        .in_stage("shuffle");
  }
}

PENSTOCK_INLINE std::optional<position> shuffle_order::position_of(position upstream) const {
  if (upstream.index >= size_) return std::nullopt;
  return position{upstream.epoch, bind(upstream.epoch).shuffled.inverse(upstream.index)};
}

PENSTOCK_INLINE windowed_shuffle_order::windowed_shuffle_order(order_input in, std::uint64_t seed,
                                                               std::uint64_t window, std::uint64_t lane_count)
    : seed_(seed), window_(window), lanes_(lane_count), recent_(new recent()) {
  if (in.size >= permutation::max_size) {
    throw error(errc::argument, "an endless order cannot be shuffled; write shuffle before repeat()")
        .in_stage("shuffle");
  }
  if (window_ == 0)
    throw error(errc::argument, "window(0) holds no shard; write window(1) or more").in_stage("shuffle");
  if (lanes_ == 0 || lanes_ > max_lanes) {
    throw error(errc::argument, {"lanes(", lanes_, ") is not in [1, 2^24]"}).in_stage("shuffle");
  }
  starts_ = in.starts ? std::move(in.starts)
                      : shared<const std::vector<std::uint64_t>>(
                            new const std::vector<std::uint64_t>(std::vector<std::uint64_t>{0, in.size}));
  if (starts_->empty() || starts_->front() != 0 || starts_->back() != in.size) {
    throw error(errc::argument, {"shard boundaries do not run from 0 to ", in.size}).in_stage("shuffle");
  }
}

PENSTOCK_INLINE std::optional<position> windowed_shuffle_order::position_of(position upstream) const {
  if (upstream.index >= size()) return std::nullopt;
  const std::uint64_t found = detail::last_not_above(starts_->data(), starts_->size(), upstream.index);
  return position{upstream.epoch, table(upstream.epoch)->index_of((*starts_)[found], found, upstream.index)};
}

PENSTOCK_INLINE shared<const detail::shuffle_table> windowed_shuffle_order::table(std::uint64_t epoch) const {
  const std::lock_guard lock(recent_->guard);
  for (const entry& known : recent_->entries) {
    if (known.table && known.epoch == epoch) return known.table;
  }
  shared<const detail::shuffle_table> made(
      new const detail::shuffle_table(*starts_, window_, lanes_, detail::shuffle_key(seed_, epoch)));
  recent_->entries[recent_->oldest] = {epoch, made};
  recent_->oldest = (recent_->oldest + 1) % recent_->entries.size();
  return made;
}

PENSTOCK_INLINE std::string shuffle_stage::describe() const {
  return detail::text({"shuffle(seed ", seed, ")"});
}

PENSTOCK_INLINE std::string windowed_shuffle_stage::describe() const {
  return detail::text({"shuffle(seed ", seed, ", window ", shards,
                       (lane_count == 1 ? "" : ", lanes " + std::to_string(lane_count)), ")"});
}

}  // namespace penstock::inline v0_1
