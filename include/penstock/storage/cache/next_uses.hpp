// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/cpp20.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace penstock::inline v0_1::detail::blocks {

/// The words of an index are shared by processes.
template <class T>
[[nodiscard]] T get(T& word, std::memory_order order = std::memory_order_relaxed) noexcept {
  return std::atomic_ref<T>(word).load(order);
}
template <class T>
void put(T& word, T value, std::memory_order order = std::memory_order_relaxed) noexcept {
  std::atomic_ref<T>(word).store(value, order);
}

/// When a process needs a block next: a row of its run, or one of the others.
class next_use {
 public:
  constexpr next_use() = default;  // unknown
  [[nodiscard]] static constexpr next_use at(std::uint64_t run_row) noexcept { return next_use(run_row + 1); }
  /// Not before this row: so far it knows what it will read.
  [[nodiscard]] static constexpr next_use not_before(std::uint64_t run_row) noexcept {
    return next_use((run_row + 1) | open);
  }
  /// Not in this run.
  [[nodiscard]] static constexpr next_use never() noexcept { return next_use(~std::uint64_t{0}); }
  [[nodiscard]] static constexpr next_use of_word(std::uint64_t word) noexcept { return next_use(word); }
  [[nodiscard]] constexpr std::uint64_t word() const noexcept { return word_; }

  [[nodiscard]] constexpr bool is_never() const noexcept { return word_ == ~std::uint64_t{0}; }
  /// Whether a process that stands at a row has to look again.
  [[nodiscard]] constexpr bool is_stale(std::uint64_t run_row) const noexcept {
    return word_ == 0 || (!is_never() && ((word_ & open) != 0 || word_ <= run_row));
  }
  /// How many rows from this one on; none if it is not known, since it may be soon.
  [[nodiscard]] constexpr std::uint64_t rows_from(std::uint64_t run_row) const noexcept {
    if (word_ == 0) return 0;
    const std::uint64_t when = (word_ & ~open) - 1;
    return when > run_row ? when - run_row : 0;
  }
  friend constexpr bool operator==(next_use, next_use) = default;

 private:
  static constexpr std::uint64_t open = std::uint64_t{1} << 62;
  constexpr explicit next_use(std::uint64_t word) noexcept : word_(word) {}

  std::uint64_t word_ = 0;
};

/// When the block of each slot of a folder is needed next, by each process that knows: in memory that all of
/// them map, a row of words for each process. A process writes its own row, and when a slot gets another
/// block, who gives it that says of all rows that it is not known.
///
/// Everything here is advice. A word that is wrong, or of a process that died, makes a worse block go; no
/// byte that is delivered depends on it.
class next_uses {
 public:
  /// So many processes have a row.
  static constexpr std::uint32_t maximum = 64;
  /// Farther than this is not told apart from never.
  static constexpr std::uint64_t farthest = ~std::uint64_t{0};

  [[nodiscard]] static constexpr std::uint64_t bytes(std::uint64_t slots) noexcept {
    return maximum * (sizeof(row_record) + slots * sizeof(std::uint64_t));
  }
  /// Refers to `bytes(slots)` bytes.
  next_uses(std::byte* memory, std::uint64_t slots) noexcept : memory_(memory), slots_(slots) {}

  [[nodiscard]] bool is_used(std::uint32_t row) const noexcept;
  /// Begins a row, in which nothing is known. The caller holds the lock of the folder.
  void begin(std::uint32_t row) const noexcept;
  void end(std::uint32_t row) const noexcept;

  // ---- the process whose row it is
  /// Where its run stands, and how long a row of the run takes; 0 if that is not known yet.
  void stand_at(std::uint32_t row, std::uint64_t run_row, std::uint64_t ns_per_row) const noexcept;
  [[nodiscard]] next_use get(std::uint32_t row, std::uint32_t slot) const noexcept;
  void set(std::uint32_t row, std::uint32_t slot, next_use when) const noexcept;
  void clear(std::uint32_t row) const noexcept;

  /// A slot gets another block. The caller holds the lock of the folder.
  void forget(std::uint32_t slot) const noexcept;

 private:
  friend class outlook;
  struct row_record {
    std::uint64_t used, run_row, ns_per_row, unused[5];
  };

  [[nodiscard]] row_record& record(std::uint32_t row) const noexcept {
    return reinterpret_cast<row_record*>(memory_)[row];
  }
  [[nodiscard]] std::uint64_t& word(std::uint32_t row, std::uint32_t slot) const noexcept {
    return reinterpret_cast<std::uint64_t*>(memory_ + maximum * sizeof(row_record))[row * slots_ + slot];
  }

  std::byte* memory_;
  std::uint64_t slots_;
};

/// The rows of processes that live, as they were seen once, for the choice of the block that goes.
class outlook {
 public:
  void add(const next_uses& all, std::uint32_t row) noexcept;
  /// All rows are there. The ranks of one job are as fast as each other, and their rows can be compared as
  /// they are: what the clock says of each would only add noise.
  void settle() noexcept;
  /// How far away the next use of a slot is, by whoever needs it first; comparable between slots.
  [[nodiscard]] std::uint64_t distance(std::uint32_t slot) const noexcept;
  /// The same of a block that is in no slot, which one process needs then.
  [[nodiscard]] std::uint64_t distance(std::uint32_t row, next_use when) const noexcept;

 private:
  struct row_seen {
    std::uint64_t run_row = 0, ns_per_row = 1;
    std::uint64_t* words = nullptr;
    std::uint32_t number = 0;
    [[nodiscard]] std::uint64_t to(next_use when) const noexcept;
  };
  std::array<row_seen, next_uses::maximum> rows_;
  std::uint32_t count_ = 0;
};

}  // namespace penstock::inline v0_1::detail::blocks

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/cache/next_uses.ipp>
#endif
