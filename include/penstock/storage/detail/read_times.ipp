// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/detail/read_times.hpp>

#include <algorithm>
#include <limits>

namespace penstock::inline v0_1 {
namespace detail {

PENSTOCK_INLINE bool read_times::add(std::chrono::nanoseconds time) noexcept {
  const auto microseconds = static_cast<std::uint64_t>(std::max<std::int64_t>(0, time.count() / 1000));
  recent_[count_++ % kept] = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(microseconds, std::numeric_limits<std::uint32_t>::max()));
  if (count_ < least_ || (late_ && count_ % between != 0)) return false;
  look();
  return true;
}

PENSTOCK_INLINE void read_times::look() noexcept {
  auto sorted = recent_;
  const std::size_t known = std::min(count_, kept);
  const auto at = [&sorted](std::size_t i) { return sorted.begin() + static_cast<std::ptrdiff_t>(i); };
  std::sort(sorted.begin(), at(known));
  const std::uint64_t slow = *at(std::min(known - 1, known * 98 / 100)), median = *at(known / 2);
  late_ = std::chrono::microseconds(std::max(slow, 3 * median));
}

}  // namespace detail
}  // namespace penstock::inline v0_1
