// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/fixed_array.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/storage/concepts.hpp>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>

namespace penstock::inline v0_1 {
namespace detail {

/// One read of a range store, and its bytes in the store. A storage may read it in several requests.
struct stored_read {
  enum condition : std::uint32_t { loading, ready, failed };

  std::byte* bytes = nullptr;
  std::uint64_t end = 0;                   // where the store's free memory resumes after it
  std::atomic<std::uint32_t> users{0};     // samples that have a part in it, plus its loading; 0: free
  std::atomic<std::uint32_t> requests{0};  // that have not ended
  std::atomic<bool> good{true};            // none of them has failed
  std::atomic<std::uint32_t> state{ready};
};

}  // namespace detail

/// A range of an object that was read ahead for one sample.
struct fetched_part {
  const void* session = nullptr;
  std::uint64_t offset = 0, size = 0;  ///< in the object
  const std::byte* bytes = nullptr;    ///< valid once `from` has ended
  detail::stored_read* from = nullptr;
  object_id object = 0;
};

/// Bytes on the way from a storage to the samples that will use them: passed from one fetching thread to the
/// workers.
///
/// Here samples are numbered by their *rows*: the order in which they are used. The fetcher claims a row,
/// adds the parts of reads that its sample will use, and publishes rows in order; a worker takes each row
/// once, published or not. A worker that takes a row before it is published reads the bytes itself, and the
/// fetcher leaves them out. So every range is handed over once, and no thread waits for a read that has not
/// begun.
///
/// The memory is a ring of a fixed number of bytes: reads get room in the order of their first use, and since
/// every use is the last one, the oldest read is the next to be reused. Rows that no worker took (of a block
/// that failed) are released when all workers are past them, `passed`.
///
/// Cost: one atomic exchange per row that is not `left_out`, and one decrement for each of its parts; no
/// allocation; a lock to wait, and once for each read that begins and ends.
/// Threads: any thread may call `left_out`, `take`, `wait`, `release`, `end` and `stop`, the consumer
/// `passed` and `halt`; all other members belong to the fetcher.
class range_store {
 public:
  using read = detail::stored_read;

  /// Allocates `bytes`, and places for at least `rows` samples, from the first that is not `passed` to the
  /// last one published.
  range_store(std::uint64_t bytes, std::uint64_t rows);
  range_store(const range_store&) = delete;
  range_store& operator=(const range_store&) = delete;
  /// No read may be loading; see `wait_for_reads`.
  ~range_store();

  [[nodiscard]] std::uint64_t capacity() const noexcept { return capacity_; }
  /// How many rows have a place at once: at least as many as requested.
  [[nodiscard]] std::uint64_t rows() const noexcept { return rows_; }
  /// The largest read that fits.
  [[nodiscard]] std::uint64_t largest() const noexcept { return capacity_ / 4; }

  /// Room for a read of so many bytes, at most `largest`, that `users` rows will use and so many requests
  /// will fill; null if there is none now.
  [[nodiscard]] read* reserve(std::uint64_t bytes, std::uint32_t users, std::uint32_t requests = 1);
  /// Waits until something is released; false once the store was stopped or halted.
  [[nodiscard]] bool wait_for_room();
  /// Whether a worker has taken a row, or all are known to be past it.
  [[nodiscard]] bool is_taken(std::uint64_t row) noexcept;
  /// Begins a row; false if a worker has already taken it, or all workers are known to be past it.
  [[nodiscard]] bool claim(std::uint64_t row);
  /// Adds a part to a claimed row; false if the row is full.
  [[nodiscard]] bool add(std::uint64_t row, const fetched_part& part);
  /// Makes a row visible to its worker; if the worker came first, releases its parts.
  void publish(std::uint64_t row);
  /// Whether a row that is claimed and not published has a part in the oldest read. If so, no room becomes
  /// free until it is published.
  [[nodiscard]] bool needs_oldest(std::uint64_t row) noexcept;
  /// Promises that no row from `first` to before `end` has been or will be claimed. Only the latest promise
  /// is kept, with those that it continues.
  void leave_out(std::uint64_t first, std::uint64_t end) noexcept;
  /// Whether nothing is fetched for the rows from `first` to before `end`, so that no worker needs to take
  /// them: an exchange per row costs more than it looks, because it ends the overlap of cache misses.
  [[nodiscard]] bool left_out(std::uint64_t first, std::uint64_t end) const noexcept {
    const std::uint64_t promise = left_out_.load(std::memory_order_relaxed), begin = promise >> count_bits;
    return first >= begin && end <= begin + (promise & max_left_out);
  }
  /// Counts requests that a storage is given, now or later; each will `end`.
  void begin(std::uint64_t requests);
  /// Ends a request of a read, whose bytes are valid once all its requests were `good`.
  void end(read& one, bool good) noexcept;
  /// Releases the rows that no worker will take any more.
  void sweep();
  /// Promises that no worker will take a row before this one.
  void passed(std::uint64_t row) noexcept;
  /// The row last given to `passed`.
  [[nodiscard]] std::uint64_t passed() const noexcept { return passed_.load(std::memory_order_acquire); }
  /// Releases all waiters except `wait_for_reads`, until `clear`.
  void halt() noexcept;
  /// Waits until no read is loading.
  void wait_for_reads();
  /// Forgets all rows and restarts them at 0. No worker may hold one, and no read may be loading.
  void clear();

  /// Takes a row: returns its parts if it was published, otherwise none. They belong to the worker until it
  /// has released each.
  [[nodiscard]] std::span<const fetched_part> take(std::uint64_t row) noexcept;
  /// Waits until a part's read has ended; false if it failed. Throws errc::stopped if the store was stopped
  /// or halted before the read ended.
  [[nodiscard]] bool wait(const fetched_part& part);
  /// Releases one use of a read.
  void release(read& one) noexcept;
  /// Ends all waits except for reads, now and later.
  void stop() noexcept;

 private:
  static constexpr std::size_t max_parts = 4;
  // A promise is one word: the first row, and how many.
  static constexpr unsigned count_bits = 20;
  static constexpr std::uint64_t max_left_out = (std::uint64_t{1} << count_bits) - 1;
  // The state of a row. Only `there` owns parts: the thread that exchanges it for another state releases
  // them.
  enum condition : std::uint64_t { unseen, claimed, there, taken };
  static constexpr std::uint64_t word(std::uint64_t row, condition is) noexcept { return row << 2 | is; }
  static constexpr std::uint64_t row_of(std::uint64_t word) noexcept { return word >> 2; }
  static constexpr condition condition_of(std::uint64_t word) noexcept {
    return static_cast<condition>(word & 3);
  }

  struct slot {
    std::atomic<std::uint64_t> word{0};
    std::uint32_t count = 0;
    std::array<fetched_part, max_parts> parts{};
  };

  [[nodiscard]] slot& at(std::uint64_t row) noexcept { return slots_[detail::to_size(row & (rows_ - 1))]; }
  [[nodiscard]] read& read_at(std::uint64_t number) noexcept {
    return reads_[detail::to_size(number & (2 * rows_ - 1))];
  }
  void let_go(const slot& of) noexcept;
  void reclaim() noexcept;
  void say_room() noexcept;

  std::uint64_t capacity_, rows_;
  buffer memory_;
  detail::fixed_array<slot> slots_;
  detail::fixed_array<read> reads_;                // a ring
  std::uint64_t oldest_ = 0, next_ = 0;            // of `reads_`
  std::uint64_t free_from_ = 0, reserved_to_ = 0;  // places in the memory; both only grow
  std::uint64_t swept_ = 0;
  std::atomic<std::uint64_t> passed_{0};
  std::atomic<std::uint64_t> left_out_{0};
  std::atomic<bool> wants_room_{false};

  std::mutex lock_;
  std::condition_variable room_, ended_;
  std::uint64_t loading_ = 0;
  bool stopped_ = false, halted_ = false;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/range_store.ipp>
#endif
