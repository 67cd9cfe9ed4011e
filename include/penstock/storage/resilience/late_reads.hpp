// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/storage/resilience/retry_policy.hpp>

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

/// A read in flight.
struct watched_read {
  std::chrono::steady_clock::time_point begun{};
  std::size_t group = 0;
  watched_read *older = nullptr, *newer = nullptr;  // of its group
  bool watched = false;
};

/// Finds the reads that are late, and counts how many second ones there may be. The owner holds the lock.
class late_reads {
  using clock = std::chrono::steady_clock;

 public:
  explicit late_reads(const hedge_rules& rules);

  /// A first read begins; `may_be_late`: it may get a second one. True if `wake` may be sooner now.
  bool begun(watched_read& one, std::size_t bytes, clock::time_point now, bool may_be_late) noexcept;
  /// It has ended, or gets no second read.
  void leave(watched_read& one) noexcept;
  /// The bytes of a read are there. True if `wake` may be sooner now.
  bool succeeded(const watched_read& one) noexcept {
    return groups_[one.group].times.add(clock::now() - one.begun);
  }
  /// Takes one that is late, if there is one and it may get a second read.
  [[nodiscard]] watched_read* take(clock::time_point now) noexcept;
  /// It does get one.
  void spend() noexcept { saved_ -= one_hedge; }
  /// When to look again.
  [[nodiscard]] clock::time_point wake(clock::time_point now) const noexcept;

 private:
  /// Reads of similar size: those in flight without a second one, oldest first, and the times of recent ones.
  struct size_group {
    watched_read *oldest = nullptr, *newest = nullptr;
    read_times times;
  };
  static constexpr std::size_t groups = 33;
  static constexpr std::int64_t one_hedge = 1'000'000, max_saved = 32 * one_hedge;

  [[nodiscard]] clock::time_point late_at(const size_group& of) const noexcept;

  std::chrono::microseconds min_delay_;
  std::int64_t for_each_read_;  // what a read adds to `saved_`
  std::int64_t saved_ = 0;
  std::array<size_group, groups> groups_{};
};

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/resilience/late_reads.ipp>
#endif
