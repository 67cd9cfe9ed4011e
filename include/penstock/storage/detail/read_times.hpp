// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
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

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/detail/read_times.ipp>
#endif
