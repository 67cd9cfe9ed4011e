// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/feed/position_buffer.hpp>

#include <penstock/core/error.hpp>

#include <algorithm>
#include <exception>
#include <utility>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE void position_buffer::begin(std::uint64_t epoch, std::uint64_t size) {
  epoch_ = epoch;
  size_ = size;
  taken_ = 0;
  given_ = 0;
  held_.clear();
  const std::uint64_t room = std::min(capacity_, size_);
  try {
    held_.reserve(detail::to_size(room));
  } catch (const std::exception&) {  // too many bytes, or too many for a vector
    throw out_of_memory(8 * room, "the positions that shuffle_buffer holds",
                        "give it fewer, or write shuffle, which holds none");
  }
  while (held_.size() < capacity_ && taken_ < size_) held_.push_back(taken_++);
}

PENSTOCK_INLINE void position_buffer::restore(std::uint64_t epoch, std::uint64_t size, std::uint64_t taken,
                                              std::uint64_t given, std::vector<std::uint64_t> held) {
  epoch_ = epoch;
  size_ = size;
  taken_ = taken;
  given_ = given;
  held_ = std::move(held);
}

PENSTOCK_INLINE bool position_buffer::could_hold(std::uint64_t size, std::uint64_t taken, std::uint64_t given,
                                                 std::vector<std::uint64_t> held) const {
  if (given > size || taken > size || taken != given + held.size()) return false;
  if (held.size() != std::min(capacity_, size - given)) return false;
  std::sort(held.begin(), held.end());
  return std::adjacent_find(held.begin(), held.end()) == held.end() && (held.empty() || held.back() < taken);
}

PENSTOCK_INLINE std::span<const std::uint64_t> position_buffer::held() const noexcept { return held_; }

}  // namespace penstock::inline v0_1
