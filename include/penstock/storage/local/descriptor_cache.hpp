// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/fixed_array.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/storage/concepts.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace penstock::inline v0_1::detail::files {

/// A bounded number of open descriptors for any number of files; the least recently used (by the clock rule)
/// are closed.
///
/// One word per file holds the descriptor and the number of reads in flight, so that a read of an open file
/// takes two uncontended atomic operations and no lock. The limit is exceeded only while more reads than that
/// are in flight.
class descriptor_cache {
  static constexpr std::uint64_t number_mask = 0x7fffffffu;
  static constexpr std::uint64_t open_bit = std::uint64_t{1} << 31;
  static constexpr std::uint64_t recent_bit = std::uint64_t{1} << 32;
  static constexpr std::uint64_t one_use = std::uint64_t{1} << 33;

 public:
  /// A descriptor that stays open while this lives.
  class lease {
   public:
    lease(std::atomic<std::uint64_t>& word, int number) noexcept : word_(&word), number_(number) {}
    lease(lease&& other) noexcept : word_(std::exchange(other.word_, nullptr)), number_(other.number_) {}
    lease& operator=(lease&&) = delete;
    ~lease() {
      if (word_ != nullptr) word_->fetch_sub(one_use, std::memory_order_release);
    }
    [[nodiscard]] int get() const noexcept { return number_; }

   private:
    std::atomic<std::uint64_t>* word_;
    int number_;
  };

  /// `limit`: 0 means the smaller of 512 and half of what the process may open.
  descriptor_cache(std::span<const std::string> paths, std::size_t limit);
  ~descriptor_cache();

  [[nodiscard]] lease use(object_id id);

  [[nodiscard]] std::size_t limit() const noexcept { return limit_; }
  [[nodiscard]] std::size_t open_now();

 private:
  static int number_of(std::uint64_t word) noexcept { return static_cast<int>(word & number_mask); }
  static std::size_t default_limit() noexcept;
  /// The caller holds a use of the file's word, so no other thread can close what is published here.
  int open_slowly(object_id id);
  /// The clock rule: a file used since the hand last passed gets another round. Two rounds find everything
  /// that can be closed.
  void close_until(std::size_t wanted);

  std::span<const std::string> paths_;
  std::size_t limit_;
  fixed_array<std::atomic<std::uint64_t>> words_;
  fixed_array<object_version> seen_;
  std::mutex mutex_;
  std::vector<object_id> open_;
  std::size_t hand_ = 0;
};

}  // namespace penstock::inline v0_1::detail::files

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/local/descriptor_cache.ipp>
#endif
