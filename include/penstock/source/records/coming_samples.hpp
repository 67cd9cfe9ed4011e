// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/manifest.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace penstock::inline v0_1::detail {

/// Where a sample is that will be evaluated soon, and from its first to its last byte that is used, if that
/// is known and they lie close together.
struct coming_sample {
  struct stretch {
    std::uint64_t begin = 0, size = 0;
  };
  manifest::place place;
  stretch bytes;

  [[nodiscard]] std::uint64_t index() const noexcept { return place.first + place.sample; }
};

/// The samples that a worker evaluates next. In a shuffled order each sample costs several cache misses one
/// after another: its entries in the index, then its bytes. Those of several samples are waited for together.
class coming_samples {
 public:
  static constexpr std::size_t capacity = 64;

  void clear() noexcept { next_ = end_ = 0; }
  /// Appends a sample; there must be room for it.
  const manifest::place& add(const manifest::place& place) noexcept { return all_[end_++].place = place; }
  [[nodiscard]] std::span<coming_sample> all() noexcept { return {all_.data(), end_}; }
  [[nodiscard]] std::span<const coming_sample> all() const noexcept { return {all_.data(), end_}; }
  /// How many have not been taken, nor passed over.
  [[nodiscard]] std::size_t left() const noexcept { return end_ - next_; }
  /// The next sample of this index, or null. Those before it were not evaluated after all, because they are
  /// kept in memory, or are in the file of the sample before them.
  [[nodiscard]] const coming_sample* take(std::uint64_t index) noexcept {
    std::size_t i = next_;
    while (i != end_ && all_[i].index() != index) ++i;
    if (i == end_) return nullptr;
    next_ = i + 1;
    return &all_[i];
  }

 private:
  std::array<coming_sample, capacity> all_{};
  std::size_t next_ = 0;
  std::size_t end_ = 0;
};

}  // namespace penstock::inline v0_1::detail
