// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/fixed_array.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/random.hpp>
#include <penstock/core/to_size.hpp>

#include <atomic>

namespace penstock::inline v0_1 {

/// The times of samples that took far longer than others, by their numbers in the source: what
/// `longest_first` has learned.
///
/// Has room for an eighth of the samples of a source, and at most 2^18, 2 MiB; where there is no more, the
/// longest stay. A hint: times are rounded to about a microsecond, and numbers that differ by a multiple of
/// 2^40 are one.
/// Threads: any. Cost: one cache line, and no lock; a sample is one word, so that it is never half of
/// another.
class slow_samples {
 public:
  explicit slow_samples(std::uint64_t samples);

  /// Remembers, or forgets with 0 ns, how long a sample took.
  void note(std::uint64_t sample, std::uint64_t ns) noexcept;
  /// How long it took; 0 if it is not known to take long.
  [[nodiscard]] std::uint64_t find(std::uint64_t sample) const noexcept {
    const std::atomic<std::uint64_t>* const line = line_of(sample);
    for (std::size_t i = 0; i < in_line; ++i)
      if (const std::uint64_t word = line[i].load(std::memory_order_relaxed); is_of(word, sample))
        return (word & times) << shift;
    return 0;
  }
  [[nodiscard]] bool empty() const noexcept { return !any_.load(std::memory_order_relaxed); }

 private:
  // 40 bits of the sample's number, and 24 of its time; no sample: 0.
  static constexpr std::uint64_t in_line = 8, times = 0xffffff, shift = 10, most = std::uint64_t{1} << 18;

  [[nodiscard]] static bool is_of(std::uint64_t word, std::uint64_t sample) noexcept {
    return (word ^ sample << 24) <= times && word != 0;
  }
  [[nodiscard]] std::atomic<std::uint64_t>* line_of(std::uint64_t sample) const noexcept {
    return words_.get() + detail::to_size((mix64(sample) & (lines_ - 1)) * in_line);
  }

  std::uint64_t lines_ = 0;
  detail::fixed_array<std::atomic<std::uint64_t>> words_;
  std::atomic<bool> any_{false};
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/run/engine/tuning/slow_samples.ipp>
#endif
