// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/window_packer.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/random.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/order/permutation.hpp>

#include <algorithm>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE std::size_t window_packer::divide(std::span<const std::uint64_t> lengths,
                                                  std::uint64_t capacity) {
  pieces_.clear();
  std::uint64_t longest = 0;
  for (const std::uint64_t length : lengths) longest = std::max(longest, length);
  if (longest > capacity) {
    units_.clear();
    for (std::size_t i = 0; i < lengths.size(); ++i)
      if (!divide_one(static_cast<std::uint32_t>(i), lengths[i], capacity)) return i;
  } else {
    units_.resize(lengths.size());
    if (options_.align == 1)
      for (std::size_t i = 0; i < lengths.size(); ++i) units_[i] = static_cast<std::uint32_t>(lengths[i]);
    else
      for (std::size_t i = 0; i < lengths.size(); ++i)
        units_[i] = units_of(static_cast<std::uint32_t>(lengths[i]), options_.align);
  }
  return lengths.size();
}

PENSTOCK_INLINE bool window_packer::divide_one(std::uint32_t place, std::uint64_t length,
                                               std::uint64_t capacity) {
  const auto put = [&](std::uint64_t first) {
    const auto here = static_cast<std::uint32_t>(std::min(length - first, capacity));
    pieces_.push_back({place, here, first, length});
    units_.push_back(units_of(here, options_.align));
  };
  if (length <= capacity || options_.overlong == overlong::truncate) {
    put(0);
  } else if (options_.overlong == overlong::split) {
    if ((length - 1) / capacity >= max_pieces - std::min<std::uint64_t>(max_pieces, pieces_.size()))
      return false;
    for (std::uint64_t at = 0; at < length; at += capacity) put(at);
  } else if (options_.overlong == overlong::refuse) {
    return false;
  }
  return true;
}

PENSTOCK_INLINE row_packer& window_packer::packer_for(std::uint64_t capacity) {
  if (!packer_ || packer_capacity_ != capacity) {
    packer_.emplace(row_limits{capacity / options_.align, options_.max_samples, options_.how});
    packer_capacity_ = capacity;
  }
  return *packer_;
}

PENSTOCK_INLINE std::size_t window_packer::pack(std::span<const std::uint64_t> lengths,
                                                std::uint64_t capacity) {
  const std::size_t fit = divide(lengths, capacity);
  if (fit == lengths.size()) {
    row_packer& packer = packer_for(capacity);
    packer.pack(units_);
    rows_ = packer.rows();
  }
  return fit;
}

PENSTOCK_INLINE std::size_t window_packer::count(std::span<const std::uint64_t> lengths,
                                                 std::uint64_t capacity) {
  const std::size_t fit = divide(lengths, capacity);
  if (fit == lengths.size()) rows_ = packer_for(capacity).count(units_);
  return fit;
}

PENSTOCK_INLINE void window_packer::write(packed_window& into, std::span<const std::uint64_t> lengths,
                                          std::uint64_t key) const {
  into.pieces.resize(units_.size());
  into.ends.resize(rows_ + 1);
  into.ends[0] = 0;
  const permutation mixed(rows_, key);
  packed_piece* to = into.pieces.data();
  for (std::size_t row = 0; row < rows_; ++row) {
    const std::size_t from = options_.how == packing::in_order ? row : detail::to_size(mixed(row));
    for (const std::uint32_t item : packer_->items(from))
      *to++ = pieces_.empty()
                  ? packed_piece{item, static_cast<std::uint32_t>(lengths[item]), 0, lengths[item]}
                  : pieces_[item];
    into.ends[row + 1] = static_cast<std::size_t>(to - into.pieces.data());
  }
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
