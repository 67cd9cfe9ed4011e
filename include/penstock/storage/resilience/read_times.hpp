// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

namespace penstock::inline v0_1 {
namespace detail {

/// The times of recent reads of similar size, and when a read is late: after more than 98 % of them, and
/// after three times their median. The owner holds the lock.
class read_times {
 public:
  static constexpr std::size_t kept = 256, between = 16;

  /// `least` reads are needed to tell.
  void need(std::size_t least) noexcept { least_ = least; }
  /// Adds a time; true if `late` may have changed, which is so after every 16 times.
  bool add(std::chrono::nanoseconds time) noexcept;
  /// After what time a read is late; nothing while too few are known.
  [[nodiscard]] std::optional<std::chrono::microseconds> late() const noexcept { return late_; }

 private:
  void look() noexcept;

  std::array<std::uint32_t, kept> recent_{};  // in microseconds; a ring
  std::size_t least_ = 0, count_ = 0;
  std::optional<std::chrono::microseconds> late_;
};

inline bool read_times::add(std::chrono::nanoseconds time) noexcept {
  const auto microseconds = static_cast<std::uint64_t>(std::max<std::int64_t>(0, time.count() / 1000));
  recent_[count_++ % kept] = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(microseconds, std::numeric_limits<std::uint32_t>::max()));
  if (count_ < least_ || (late_ && count_ % between != 0)) return false;
  look();
  return true;
}

inline void read_times::look() noexcept {
  auto sorted = recent_;
  const std::size_t known = std::min(count_, kept);
  const auto at = [&sorted](std::size_t i) { return sorted.begin() + static_cast<std::ptrdiff_t>(i); };
  std::sort(sorted.begin(), at(known));
  const std::uint64_t slow = *at(std::min(known - 1, known * 98 / 100)), median = *at(known / 2);
  late_ = std::chrono::microseconds(std::max(slow, 3 * median));
}

}  // namespace detail
}  // namespace penstock::inline v0_1
