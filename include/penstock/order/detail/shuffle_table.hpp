// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
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
                std::uint64_t key);

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
                                       std::uint64_t i) const noexcept;

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

#ifndef PENSTOCK_COMPILED
#include <penstock/order/detail/shuffle_table.ipp>
#endif
