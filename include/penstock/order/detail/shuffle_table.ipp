// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/detail/shuffle_table.hpp>

namespace penstock::inline v0_1::detail {

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

}  // namespace penstock::inline v0_1::detail
