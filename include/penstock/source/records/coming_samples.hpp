// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/records/shard_index.hpp>
#include <penstock/storage/concepts.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace penstock::inline v0_1::detail {

/// Where a sample is that will be evaluated soon.
struct coming_sample {
  const shard_index* tables = nullptr;  ///< null: not loaded yet
  std::uint64_t index = 0;              ///< in the dataset
  std::uint64_t shard_begin = 0;        ///< the first sample of the shard
  object_id shard = 0;
  std::uint32_t first = 0;  ///< the first member
  std::uint32_t end = 0;
};

struct bytes_in_shard {
  object_id shard = 0;
  std::uint64_t begin = 0;
  std::uint64_t size = 0;
};

/// The samples that a worker evaluates next. In a shuffled order each sample costs several cache misses one
/// after another: its entries in the index, then its bytes. Those of several samples are waited for together.
class coming_samples {
 public:
  static constexpr std::size_t capacity = 64;

  void clear() noexcept { next_ = end_ = 0; }
  /// Appends a sample, and prefetches the first table of its shard; further ones than 64 are left out.
  void add(const coming_sample& one) noexcept {
    if (end_ == capacity) return;
    if (one.tables != nullptr) one.tables->prefetch_first(one.index - one.shard_begin);
    all_[end_++] = one;
  }
  /// Finds the members of all samples, and prefetches their entries.
  void prefetch_members() noexcept {
    for (std::size_t i = 0; i < end_; ++i) {
      coming_sample& one = all_[i];
      if (one.tables == nullptr) continue;
      one.first = one.tables->first_member(one.index - one.shard_begin);
      one.end = one.tables->end_member(one.index - one.shard_begin);
      if (one.first != one.end) one.tables->prefetch_member(one.first);
    }
  }
  /// The bytes of a sample's used members; none if its tables are not loaded.
  [[nodiscard]] bytes_in_shard bytes_of(std::size_t i) const noexcept {
    if (i >= end_ || all_[i].tables == nullptr) return {};
    const coming_sample& one = all_[i];
    std::uint32_t first = one.first, end = one.end;
    while (first != end && !one.tables->uses(first)) ++first;
    while (first != end && !one.tables->uses(end - 1)) --end;
    if (first == end) return {};
    const std::uint64_t begin = one.tables->offset(first);
    return {one.shard, begin, one.tables->end(end - 1) - begin};
  }
  /// How many have not been taken, nor passed over.
  [[nodiscard]] std::size_t left() const noexcept { return end_ - next_; }
  /// The next sample of this index, if its tables are loaded, else null. Those before it were not evaluated
  /// after all, because they are kept in memory.
  [[nodiscard]] const coming_sample* take(std::uint64_t index) noexcept {
    std::size_t i = next_;
    while (i != end_ && all_[i].index != index) ++i;
    if (i == end_) return nullptr;
    next_ = i + 1;
    return all_[i].tables != nullptr ? &all_[i] : nullptr;
  }

 private:
  std::array<coming_sample, capacity> all_{};
  std::size_t next_ = 0;
  std::size_t end_ = 0;
};

}  // namespace penstock::inline v0_1::detail
