// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/resilience/late_reads.hpp>

#include <penstock/core/to_size.hpp>

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

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

PENSTOCK_INLINE late_reads::late_reads(const hedge_rules& rules)
    : min_delay_(rules.min_delay),
      for_each_read_(static_cast<std::int64_t>(rules.max_extra_requests * static_cast<double>(one_hedge))) {
  for (size_group& one : groups_) one.times.need(rules.observations);
}

PENSTOCK_INLINE bool late_reads::begun(watched_read& one, std::size_t bytes, clock::time_point now,
                                       bool may_be_late) noexcept {
  saved_ = std::min(max_saved, saved_ + for_each_read_);
  one.begun = now;
  one.group = std::min(groups - 1, to_size(std::bit_width(bytes)) / 2);
  if (!may_be_late) return false;
  size_group& in = groups_[one.group];
  one.watched = true;
  one.newer = nullptr;
  one.older = in.newest;
  (in.newest == nullptr ? in.oldest : in.newest->newer) = &one;
  in.newest = &one;
  return in.oldest == &one;
}

PENSTOCK_INLINE void late_reads::leave(watched_read& one) noexcept {
  if (!std::exchange(one.watched, false)) return;
  size_group& in = groups_[one.group];
  (one.older == nullptr ? in.oldest : one.older->newer) = one.newer;
  (one.newer == nullptr ? in.newest : one.newer->older) = one.older;
}

PENSTOCK_INLINE late_reads::clock::time_point late_reads::late_at(const size_group& of) const noexcept {
  const auto late = of.times.late();
  if (of.oldest == nullptr || !late) return clock::time_point::max();
  return of.oldest->begun + std::max(*late, min_delay_);
}

PENSTOCK_INLINE watched_read* late_reads::take(clock::time_point now) noexcept {
  if (saved_ < one_hedge) return nullptr;
  for (const size_group& in : groups_) {
    if (late_at(in) > now) continue;
    watched_read* const one = in.oldest;
    leave(*one);
    return one;
  }
  return nullptr;
}

PENSTOCK_INLINE late_reads::clock::time_point late_reads::wake(clock::time_point now) const noexcept {
  auto first = clock::time_point::max();
  for (const size_group& in : groups_) first = std::min(first, late_at(in));
  return saved_ < one_hedge ? std::max(first, now + std::chrono::milliseconds(1)) : first;
}

}  // namespace detail
}  // namespace penstock::inline v0_1
