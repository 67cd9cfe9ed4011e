// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/shuffle.hpp>

#include <penstock/core/message.hpp>

namespace penstock::inline v0_1 {

namespace detail {

PENSTOCK_INLINE shuffle_table::shuffle_table(const std::vector<std::uint64_t>& starts, std::uint64_t window,
                                             std::uint64_t lanes, std::uint64_t key)
    : size_(starts.back()),
      lanes_(lanes),
      lane_length_(size_ / lanes),
      longer_lanes_(size_ % lanes),
      by_lanes_(lanes),
      by_length_(std::max<std::uint64_t>(1, lane_length_)),
      by_longer_(lane_length_ + 1) {
  std::vector<std::uint64_t> filled;
  filled.reserve(starts.size());
  for (std::uint64_t i = 0; i + 1 < starts.size(); ++i) {
    if (starts[i + 1] > starts[i]) filled.push_back(i);
  }
  const permutation shuffled(filled.size(), mix64(key ^ 0x7368'6172'6473'0000));
  lane_windows_.reserve(lanes + 1);
  shard_places_.assign(starts.size(), 0);
  lane_windows_.push_back(0);
  std::uint64_t place = 0, lane = 0, pieces = window;  // a full window, so that the first piece opens one
  for (std::uint64_t i = 0; i < filled.size(); ++i) {
    const std::uint64_t number = filled[shuffled(i)];
    std::uint64_t source = starts[number];
    shard_places_[number] = place;
    while (source < starts[number + 1]) {
      const std::uint64_t length = std::min(starts[number + 1] - source, lane_begin(lane + 1) - place);
      if (pieces == window) {
        window_places_.push_back(place);
        window_pieces_.push_back(piece_places_.size());
        pieces = 0;
      }
      piece_places_.push_back(place);
      piece_shifts_.push_back(source - place);
      ++pieces;
      place += length;
      source += length;
      if (place == lane_begin(lane + 1)) {
        lane_windows_.push_back(window_places_.size());
        ++lane;
        pieces = window;
      }
    }
  }
  lane_windows_.resize(lanes + 1, window_places_.size());  // lanes beyond the last sample are empty
  const std::uint64_t windows = window_places_.size();
  window_places_.push_back(size_);
  window_pieces_.push_back(piece_places_.size());
  mixes_.reserve(windows);
  for (std::uint64_t w = 0; w < windows; ++w)
    mixes_.emplace_back(window_places_[w + 1] - window_places_[w], mix64(key + w));
}

PENSTOCK_INLINE std::uint64_t shuffle_table::index_of(std::uint64_t shard_start, std::uint64_t number,
                                                      std::uint64_t i) const noexcept {
  std::uint64_t place = shard_places_[number] + (i - shard_start);
  const std::uint64_t w = last_not_above(window_places_.data(), mixes_.size(), place);
  place = window_places_[w] + mixes_[w].inverse(place - window_places_[w]);
  if (lanes_ == 1) return place;
  const std::uint64_t longer = longer_lanes_ * (lane_length_ + 1);
  const auto [line, depth] = place < longer ? by_longer_(place) : by_length_(place - longer);
  return depth * lanes_ + line + (place < longer ? 0 : longer_lanes_);
}

PENSTOCK_INLINE void check_shuffled(std::uint64_t size) {
  if (size >= permutation::max_size)
    throw error(errc::argument, "an endless order cannot be shuffled; write shuffle before repeat()")
        .in_stage("shuffle");
}

}  // namespace detail

PENSTOCK_INLINE shuffle_order::shuffle_order(const order_input& in, std::uint64_t seed)
    : size_(in.size), seed_(seed) {
  detail::check_shuffled(size_);
}

PENSTOCK_INLINE std::optional<position> shuffle_order::position_of(position upstream) const {
  if (upstream.index >= size_) return std::nullopt;
  return position{upstream.epoch, bind(upstream.epoch).shuffled.inverse(upstream.index)};
}

PENSTOCK_INLINE windowed_shuffle_order::windowed_shuffle_order(order_input in, std::uint64_t seed,
                                                               std::uint64_t window, std::uint64_t lane_count)
    : seed_(seed), window_(window), lanes_(lane_count), recent_(new recent()) {
  detail::check_shuffled(in.size);
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
