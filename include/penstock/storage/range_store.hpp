// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/fixed_array.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/storage/detail/fetched_part.hpp>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>

namespace penstock::inline v0_1 {
namespace detail {

/// One read of a range store, and its bytes in the store.
struct stored_read {
  enum condition : std::uint32_t { loading, ready, failed };

  std::byte* bytes = nullptr;
  std::uint64_t end = 0;                // where the store's memory goes on behind it
  std::atomic<std::uint32_t> users{0};  // samples that have a part in it, and its loading; 0: free
  std::atomic<std::uint32_t> state{ready};
};

}  // namespace detail

/// Bytes on the way from a storage to the samples that will use them: between one thread that fetches and the
/// workers.
///
/// Samples have numbers here, their *turns*: the order in which they are used. The fetcher claims a turn,
/// adds the parts of reads that its sample will use, and publishes it, in the order of turns; a worker takes
/// each turn once, whether it was published or not. What a worker takes before that is its own to read, and
/// the fetcher leaves it out. So every range is handed over once, and nobody waits for a read that has not
/// begun.
///
/// The memory is a ring of a fixed number of bytes: reads are made room for in the order of their first use,
/// and since every use is the last one, the oldest is the one to be used again. Turns that no worker took
/// (of a block that failed) are let go when all workers are behind them, `passed`.
///
/// Cost: one atomic exchange for a turn and one decrement for each of its parts; nothing is allocated; a lock
/// to wait, and once for each read that begins and ends.
/// Threads: `take`, `wait`, `release`, `end` and `stop` may be called by any, `passed` and `halt` by the
/// consumer, and all others belong to the fetcher.
class range_store {
 public:
  using read = detail::stored_read;

  /// Memory for `bytes`, and a place for each of `turns` samples at least, from the first that is not
  /// `passed` to the last that is published.
  range_store(std::uint64_t bytes, std::uint64_t turns);
  range_store(const range_store&) = delete;
  range_store& operator=(const range_store&) = delete;
  /// No read may be loading; see `wait_for_reads`.
  ~range_store();

  [[nodiscard]] std::uint64_t capacity() const noexcept { return capacity_; }
  /// Turns that have a place at once: at least as many as were asked for.
  [[nodiscard]] std::uint64_t turns() const noexcept { return turns_; }
  /// The largest read that is made room for.
  [[nodiscard]] std::uint64_t largest() const noexcept { return capacity_ / 4; }

  /// Room for a read of so many bytes, at most `largest`, that `users` turns will use; null where there is
  /// none now.
  [[nodiscard]] read* reserve(std::uint64_t bytes, std::uint32_t users);
  /// Waits until something was let go; false once the store was stopped or halted.
  [[nodiscard]] bool wait_for_room();
  /// Begins a turn: false where a worker has taken it already, or all are known to be behind it.
  [[nodiscard]] bool claim(std::uint64_t turn);
  /// Adds a part to a turn that is claimed; false where it has as many as it can have.
  [[nodiscard]] bool add(std::uint64_t turn, const fetched_part& part);
  /// Shows a turn to its worker; where that came before, lets its parts go.
  void publish(std::uint64_t turn);
  /// Whether a turn that is claimed and not published has a part in the oldest read. Then there is no room
  /// until it is published.
  [[nodiscard]] bool needs_oldest(std::uint64_t turn) noexcept;
  /// So many reads are given to a storage; each will `end`.
  void begin(std::uint64_t reads);
  /// A read has ended; its bytes are there where `good`.
  void end(read& one, bool good) noexcept;
  /// Lets go of turns that no worker will take any more.
  void sweep();
  /// No worker will take a turn before this one.
  void passed(std::uint64_t turn) noexcept;
  /// The turn that was last said so.
  [[nodiscard]] std::uint64_t passed() const noexcept { return passed_.load(std::memory_order_acquire); }
  /// Lets go of all that wait but for `wait_for_reads`, until `clear`.
  void halt() noexcept;
  /// Waits until no read is loading.
  void wait_for_reads();
  /// Forgets all turns: they begin again at 0. No worker holds one, and no read is loading.
  void clear();

  /// Takes a turn: its parts, where it was published, else none. They are the worker's until it has let go
  /// of each.
  [[nodiscard]] std::span<const fetched_part> take(std::uint64_t turn) noexcept;
  /// Waits until a part's read has ended; false where it failed. Throws errc::stopped where the store was
  /// stopped or halted and the read has not ended.
  [[nodiscard]] bool wait(const fetched_part& part);
  /// Lets go of a use of a read.
  void release(read& one) noexcept;
  /// Ends all waiting but for reads, now and later.
  void stop() noexcept;

 private:
  static constexpr std::size_t most_parts = 4;
  // What became of a turn. `there` alone owns parts: whoever exchanges it for something else lets them go.
  enum condition : std::uint64_t { unseen, claimed, there, taken };
  static constexpr std::uint64_t word(std::uint64_t turn, condition is) noexcept { return turn << 2 | is; }
  static constexpr std::uint64_t turn_of(std::uint64_t word) noexcept { return word >> 2; }
  static constexpr condition condition_of(std::uint64_t word) noexcept {
    return static_cast<condition>(word & 3);
  }

  struct slot {
    std::atomic<std::uint64_t> word{0};
    std::uint32_t count = 0;
    std::array<fetched_part, most_parts> parts{};
  };

  [[nodiscard]] slot& at(std::uint64_t turn) noexcept {
    return slots_[static_cast<std::size_t>(turn & (turns_ - 1))];
  }
  [[nodiscard]] read& read_at(std::uint64_t number) noexcept {
    return reads_[static_cast<std::size_t>(number & (2 * turns_ - 1))];
  }
  void let_go(const slot& of) noexcept;
  void reclaim() noexcept;
  void say_room() noexcept;

  std::uint64_t capacity_, turns_;
  buffer memory_;
  detail::fixed_array<slot> slots_;
  detail::fixed_array<read> reads_;                // a ring
  std::uint64_t oldest_ = 0, next_ = 0;            // of `reads_`
  std::uint64_t free_from_ = 0, reserved_to_ = 0;  // of the memory; both only grow
  std::uint64_t swept_ = 0;
  std::atomic<std::uint64_t> passed_{0};
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
