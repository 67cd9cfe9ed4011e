// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>
#include <penstock/core/to_size.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace penstock::inline v0_1 {

/// How many durations fell into each bucket, and their sum. The bounds are powers of two, those of a native
/// histogram of Prometheus with schema 0: from 2^-20 s (about 1 us) to 2^6 s, and one bucket beyond.
struct duration_counts {
  static constexpr std::size_t buckets = 28;

  std::array<std::uint64_t, buckets> counts{};
  std::uint64_t sum_ns = 0;

  /// The upper bound of a bucket, which belongs to it, in seconds; not of the last one, which has none.
  [[nodiscard]] static constexpr double bound(std::size_t bucket) noexcept {
    return static_cast<double>(std::uint64_t{1} << bucket) / (1 << 20);
  }
  [[nodiscard]] static constexpr std::size_t bucket_of(std::uint64_t ns) noexcept {
    constexpr std::uint64_t longest = std::uint64_t{1} << 40;  // beyond all bounds; nothing overflows
    // 10^9 ns are 2^20 units; rounded up
    const std::uint64_t units = (std::min(ns, longest) * 2048 + 1'953'124) / 1'953'125;
    return std::min(detail::to_size(std::bit_width(units - (units != 0))), buckets - 1);
  }

  void add(std::uint64_t ns) noexcept {
    ++counts[bucket_of(ns)];
    sum_ns += ns;
  }
  [[nodiscard]] std::uint64_t count() const noexcept {
    std::uint64_t all = 0;
    for (const std::uint64_t one : counts) all += one;
    return all;
  }
  duration_counts& operator+=(const duration_counts& other) noexcept {
    for (std::size_t i = 0; i < buckets; ++i) counts[i] += other.counts[i];
    sum_ns += other.sum_ns;
    return *this;
  }
  friend bool operator==(const duration_counts&, const duration_counts&) = default;
};

/// Counts durations while others read them. Threads: any may add and read.
class duration_recorder {
 public:
  void add(std::uint64_t ns) noexcept {
    counts_[duration_counts::bucket_of(ns)].fetch_add(1, std::memory_order_relaxed);
    sum_ns_.fetch_add(ns, std::memory_order_relaxed);
  }
  /// For a thread that is the only one that adds: no locked instruction.
  void add_alone(std::uint64_t ns) noexcept {
    if (ns == 0) return increase(counts_[0], 1);
    increase(counts_[duration_counts::bucket_of(ns)], 1);
    increase(sum_ns_, ns);
  }
  [[nodiscard]] duration_counts read() const noexcept {
    duration_counts all;
    for (std::size_t i = 0; i < duration_counts::buckets; ++i)
      all.counts[i] = counts_[i].load(std::memory_order_relaxed);
    all.sum_ns = sum_ns_.load(std::memory_order_relaxed);
    return all;
  }

 private:
  static void increase(std::atomic<std::uint64_t>& one, std::uint64_t by) noexcept {
    one.store(one.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }

  std::array<std::atomic<std::uint64_t>, duration_counts::buckets> counts_{};
  std::atomic<std::uint64_t> sum_ns_{0};
};

}  // namespace penstock::inline v0_1
