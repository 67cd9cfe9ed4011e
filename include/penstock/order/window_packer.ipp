// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/window_packer.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/random.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/order/permutation.hpp>

#include <algorithm>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE std::size_t window_packer::pack(std::span<const std::uint64_t> lengths,
                                                std::uint64_t capacity) {
  pieces_.clear();
  units_.clear();
  pieces_.reserve(lengths.size());
  units_.reserve(lengths.size());
  for (std::size_t i = 0; i < lengths.size(); ++i)
    if (!add(static_cast<std::uint32_t>(i), lengths[i], capacity)) return i;
  if (!packer_ || packer_capacity_ != capacity) {
    packer_.emplace(row_limits{capacity / options_.align, options_.max_samples, options_.how});
    packer_capacity_ = capacity;
  }
  packer_->pack(units_);
  return lengths.size();
}

PENSTOCK_INLINE void window_packer::write(packed_window& into, std::span<const std::uint64_t> lengths,
                                          std::uint64_t key) const {
  into.lengths.assign(lengths.begin(), lengths.end());
  into.pieces.clear();
  into.pieces.reserve(pieces_.size());
  into.ends.clear();
  into.ends.reserve(rows() + 1);
  into.ends.push_back(0);
  const permutation mixed(rows(), key);
  for (std::size_t row = 0; row < rows(); ++row) {
    const std::size_t from = options_.how == packing::in_order ? row : detail::to_size(mixed(row));
    for (const std::uint32_t item : packer_->items(from)) into.pieces.push_back(pieces_[item]);
    into.ends.push_back(into.pieces.size());
  }
}

PENSTOCK_INLINE bool window_packer::add(std::uint32_t place, std::uint64_t length, std::uint64_t capacity) {
  if (length <= capacity || options_.overlong == overlong::truncate) {
    put({place, static_cast<std::uint32_t>(std::min(length, capacity)), 0});
  } else if (options_.overlong == overlong::split) {
    if ((length - 1) / capacity >= max_pieces - std::min<std::uint64_t>(max_pieces, pieces_.size()))
      return false;
    for (std::uint64_t at = 0; at < length; at += capacity)
      put({place, static_cast<std::uint32_t>(std::min(length - at, capacity)), at});
  } else if (options_.overlong == overlong::refuse) {
    return false;
  }
  return true;
}

PENSTOCK_INLINE void window_packer::put(const packed_piece& piece) {
  pieces_.push_back(piece);
  units_.push_back(units_of(piece.length, options_.align));
}

PENSTOCK_INLINE std::uint64_t row_order_key(std::uint64_t seed, std::uint64_t epoch, std::uint64_t window) {
  return rng(seed, epoch, window, 0x7061636b)();
}

PENSTOCK_INLINE void check_pack(const packed_facts& facts) {
  const auto refuse = [](std::initializer_list<detail::piece> why) {
    throw error(errc::argument, why).in_stage("pack");
  };
  const pack_options& o = facts.options;
  if (o.window == 0 || o.window >> 28 != 0)
    refuse({"pack puts 1 to 2^28 samples together, and .window is ", o.window});
  if (o.align == 0 || o.align >> 31 != 0) refuse({".align of pack is at least 1, not ", o.align});
  if (facts.slices > 1 && o.align % (2 * std::uint64_t{facts.slices}) != 0)
    refuse({"context_parallel cuts each sample into 2 x ", facts.slices,
            " equal chunks; write .align = ", 2 * std::uint64_t{facts.slices}, " in pack"});
  if (!facts.capacity.changes()) check_capacity(facts, facts.capacity.fixed());
}

PENSTOCK_INLINE void check_capacity(const packed_facts& facts, std::uint64_t capacity) {
  const auto refuse = [](std::initializer_list<detail::piece> why) {
    throw error(errc::argument, why).in_stage("pack");
  };
  if (capacity == 0) refuse({"a row of pack has 0 tokens and holds no sample; give it at least 1"});
  if (capacity >> 31 != 0)
    refuse({"a row of pack has fewer than 2^31 tokens, and ", capacity, " are asked for"});
  if (capacity % (2 * std::uint64_t{facts.slices}) != 0 && facts.slices != 1)
    refuse({"a row of ", capacity, " tokens cannot be cut into 2 x ", facts.slices,
            " equal chunks for context_parallel; give pack a capacity that can"});
  if (capacity % facts.options.align != 0)
    refuse({"a row of ", capacity, " tokens is no multiple of .align, ", facts.options.align,
            "; give pack a capacity that is"});
}

}  // namespace penstock::inline v0_1
