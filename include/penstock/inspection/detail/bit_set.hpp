// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>
#include <penstock/core/to_size.hpp>

#include <atomic>
#include <bit>
#include <utility>
#include <vector>

namespace penstock::inline v0_1::detail {

/// A set of numbers below a limit, one bit each. Any thread may call `set`; only one may call the rest.
class bit_set {
 public:
  bit_set() = default;
  explicit bit_set(std::uint64_t limit) : words_(detail::to_size((limit + 63) / 64), 0) {}

  /// Inserts a number; returns whether it was already in the set.
  bool set(std::uint64_t number) noexcept {
    const std::atomic_ref<std::uint64_t> word(words_[detail::to_size(number / 64)]);
    const std::uint64_t bit = std::uint64_t{1} << (number % 64);
    return (word.fetch_or(bit, std::memory_order_relaxed) & bit) != 0;
  }
  /// Like `set`, while no other thread inserts.
  bool set_alone(std::uint64_t number) noexcept {
    std::uint64_t& word = words_[detail::to_size(number / 64)];
    const std::uint64_t bit = std::uint64_t{1} << (number % 64);
    return (std::exchange(word, word | bit) & bit) != 0;
  }
  void clear() noexcept { words_.assign(words_.size(), 0); }
  [[nodiscard]] std::uint64_t count() const noexcept {
    std::uint64_t all = 0;
    for (const std::uint64_t word : words_) all += static_cast<std::uint64_t>(std::popcount(word));
    return all;
  }

  /// Calls `f(first, count)` for each run of neighbours, in order.
  template <class F>
  void for_each_run(F f) const {
    std::uint64_t begin = 0, length = 0;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if (words_[i] == 0 && length == 0) continue;
      for (unsigned bit = 0; bit < 64; ++bit) {
        if ((words_[i] >> bit & 1) != 0) {
          if (length++ == 0) begin = i * 64 + bit;
        } else if (length != 0) {
          f(begin, std::exchange(length, 0));
        }
      }
    }
    if (length != 0) f(begin, length);
  }

 private:
  std::vector<std::uint64_t> words_;
};

}  // namespace penstock::inline v0_1::detail
