// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/permutation.hpp>

#include <algorithm>
#include <vector>

namespace penstock::inline v0_1::detail {

/// The key of one epoch of a shuffle.
[[nodiscard]] constexpr std::uint64_t shuffle_key(std::uint64_t seed, std::uint64_t epoch) noexcept {
  constexpr std::uint64_t stream = 0x7368'7566'666c'6500;  // "shuffle"
  return rng(seed, epoch, 0, stream)();
}

/// One epoch of a windowed shuffle: the permuted shards are laid end to end ("the row"), the row is cut
/// into lanes and the lanes into windows.
///
/// Places in the row are numbered from 0 up to size. A piece is one lane's part of one shard; a window is
/// up to `window` pieces of one lane. Windows therefore never cross a lane's border, and shuffling inside
/// each window is a bijection on the whole.
class shuffle_table {
 public:
  shuffle_table(const std::vector<std::uint64_t>& starts, std::uint64_t window, std::uint64_t lanes,
                std::uint64_t key)
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

  /// The source index at index p of the epoch.
  [[nodiscard]] std::uint64_t operator()(std::uint64_t p) const noexcept {
    std::uint64_t place = p;
    std::uint64_t first = 0, count = mixes_.size();
    if (lanes_ > 1) {
      const auto [depth, lane] = by_lanes_(p);
      place = lane_begin(lane) + depth;
      first = lane_windows_[lane];
      count = lane_windows_[lane + 1] - first;
    }
    const std::uint64_t w = first + last_not_above(window_places_.data() + first, count, place);
    place = window_places_[w] + mixes_[w](place - window_places_[w]);
    const std::uint64_t piece = window_pieces_[w];
    return place + piece_shifts_[piece + last_not_above(piece_places_.data() + piece,
                                                        window_pieces_[w + 1] - piece, place)];
  }

  /// The epoch index of source index i, which lies in shard `number`.
  [[nodiscard]] std::uint64_t index_of(std::uint64_t shard_start, std::uint64_t number,
                                       std::uint64_t i) const noexcept {
    std::uint64_t place = shard_places_[number] + (i - shard_start);
    const std::uint64_t w = last_not_above(window_places_.data(), mixes_.size(), place);
    place = window_places_[w] + mixes_[w].inverse(place - window_places_[w]);
    if (lanes_ == 1) return place;
    const std::uint64_t longer = longer_lanes_ * (lane_length_ + 1);
    const auto [line, depth] = place < longer ? by_longer_(place) : by_length_(place - longer);
    return depth * lanes_ + line + (place < longer ? 0 : longer_lanes_);
  }

 private:
  /// Lanes hold the indices p with p mod lanes == lane, so the first ones are longer by one.
  [[nodiscard]] std::uint64_t lane_begin(std::uint64_t lane) const noexcept {
    return lane * lane_length_ + std::min(lane, longer_lanes_);
  }

  std::uint64_t size_, lanes_, lane_length_, longer_lanes_;
  divider by_lanes_, by_length_, by_longer_;
  std::vector<std::uint64_t> lane_windows_;   // each lane's first window; one more at the end
  std::vector<std::uint64_t> window_places_;  // each window's first place; one more at the end
  std::vector<std::uint64_t> window_pieces_;  // each window's first piece; one more at the end
  std::vector<permutation> mixes_;            // each window's shuffle
  std::vector<std::uint64_t> piece_places_;   // each piece's first place
  std::vector<std::uint64_t> piece_shifts_;   // each piece's source index - place
  std::vector<std::uint64_t> shard_places_;   // each shard's first place
};

}  // namespace penstock::inline v0_1::detail
