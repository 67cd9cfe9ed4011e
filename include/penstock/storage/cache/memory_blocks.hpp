// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/fixed_array.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/storage/cache/block_index.hpp>
#include <penstock/storage/cache/block_plan.hpp>
#include <penstock/storage/disk_cache.hpp>
#include <penstock/storage/reads/wait_stops.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace penstock::inline v0_1::detail::blocks {

/// The blocks of a `memory_cache`, in memory of this process that was reserved at once.
///
/// A slot is free, or being filled by one thread, or full. Its word has a generation, one of these, and how
/// many readers have pinned it. Readers pin a full slot, without a lock, and only then look whether it has
/// the block that they want; a slot with pins is not given to another block. Everything else that changes
/// which block is where has the lock.
/// Threads: any number.
class memory_blocks {
  struct alignas(64) slot_record {  // readers of others do not share its line
    std::atomic<std::uint64_t> word{0};
    std::atomic<std::uint64_t> use{0};  // the clock when it was used last, or was filled
    key what;                           // changes with the lock, and only without pins
    std::uint32_t next = 0;             // in its chain: the number of a slot and 1, or 0
    bool in_vain = false;               // who waited for it gave up
    std::thread::id filler;
  };

 public:
  /// Throws errc::argument if the system does not give that much.
  memory_blocks(std::uint64_t limit, std::uint64_t block, eviction evict);
  ~memory_blocks();

  /// How many slots there are within a limit of bytes, everything else included.
  [[nodiscard]] static std::uint64_t slots_within(std::uint64_t limit, std::uint64_t block) noexcept;
  [[nodiscard]] std::uint64_t block_size() const noexcept { return block_; }

  /// A full block, which stays where it is as long as this lives.
  class pin {
   public:
    pin() noexcept = default;
    [[nodiscard]] explicit operator bool() const noexcept { return slot_ != nullptr; }
    [[nodiscard]] const std::byte* bytes() const noexcept { return bytes_; }

   private:
    friend memory_blocks;
    struct released {
      void operator()(slot_record* slot) const noexcept {
        slot->word.fetch_sub(one_pin, std::memory_order_release);
      }
    };
    pin(slot_record& pinned, const std::byte* bytes) noexcept : slot_(&pinned), bytes_(bytes) {}

    std::unique_ptr<slot_record, released> slot_;
    const std::byte* bytes_ = nullptr;
  };

  /// The block, if it is in the slot that `hint` names; whoever finds that it is not there asks.
  [[nodiscard]] pin find(const key& what, const std::atomic<std::uint32_t>& hint) noexcept {
    const std::uint32_t last = hint.load(std::memory_order_relaxed);
    if (last == 0) return {};
    slot_record& one = slots_[last - 1];
    std::uint64_t word = one.word.load(std::memory_order_relaxed);
    do {
      if (phase_of(word) != phase::full) return {};
    } while (!one.word.compare_exchange_weak(word, word + one_pin, std::memory_order_acquire,
                                             std::memory_order_relaxed));
    pin found(one, bytes_of(last - 1));
    if (one.what != what) return {};
    if (touches_) {
      const std::uint64_t now = clock_.load(std::memory_order_relaxed);
      if (one.use.load(std::memory_order_relaxed) != now) one.use.store(now, std::memory_order_relaxed);
    }
    return found;
  }

  /// Whether the block is there; then `hint` says where.
  [[nodiscard]] bool has(const key& what, std::atomic<std::uint32_t>& hint) noexcept;

  /// What somebody has who asked for a block that was not found.
  struct answer {
    enum kind { here, mine, other, nothing } is = nothing;
    std::uint32_t slot = 0;
    std::uint64_t state = 0;
    bool evicted = false;  ///< another block went for it
  };
  /// `here`: it is there. `mine`: this caller fills its `room`, and must call `publish` or `give_up`.
  /// `other`: somebody fills it. `nothing`: all slots are being filled or read. Of the first two `hint` says
  /// where.
  [[nodiscard]] answer ask(const key& what, std::atomic<std::uint32_t>& hint) noexcept;
  [[nodiscard]] std::byte* room(const answer& mine) const noexcept { return bytes_of(mine.slot); }
  void publish(const answer& mine) noexcept;
  void give_up(const answer& mine) noexcept;
  /// Whether this thread fills it itself: a cache that is around itself must not wait for that.
  [[nodiscard]] bool is_own(const answer& other) noexcept;
  /// Waits until the slot is not being filled any more, or `stops` ends a wait that began then, or it is
  /// late.
  /// False if it is late; then nobody waits for this any more, and `ask` says `nothing`.
  [[nodiscard]] bool wait(const answer& other, std::chrono::steady_clock::time_point late,
                          const wait_stops& stops, wait_stops::moment begun) noexcept;
  /// Waiting threads look at their `stops`.
  void wake() noexcept;

  /// From now on blocks go by what a run will read, too, until `leave`. Not with another kind of eviction.
  void follow(const block_plan& plan);
  void leave(const block_plan& plan) noexcept;

 private:
  static constexpr unsigned phase_bits = 2, pin_bits = 22;
  static constexpr std::uint64_t one_pin = std::uint64_t{1} << phase_bits,
                                 one_generation = one_pin << pin_bits, pins = one_generation - one_pin;
  static constexpr phase phase_of(std::uint64_t word) noexcept {
    return static_cast<phase>(word & (one_pin - 1));
  }
  [[nodiscard]] static std::uint64_t with(std::uint64_t word, phase next) noexcept {
    return (word & ~(one_generation - 1)) | static_cast<std::uint64_t>(next);
  }

  [[nodiscard]] std::byte* bytes_of(std::uint32_t slot) const noexcept { return memory_ + slot * block_; }
  [[nodiscard]] std::uint32_t& chain(const key& what) const noexcept;
  [[nodiscard]] std::optional<std::uint32_t> slot_of(const key& what) const noexcept;
  void unlink(std::uint32_t slot) noexcept;
  /// Which slot gets another block. None if all of them are being filled or read. The caller has the lock.
  [[nodiscard]] std::optional<std::uint32_t> victim() noexcept;
  /// How far away the next use of a block is, by the run that needs it first.
  [[nodiscard]] std::uint64_t distance(const key& what) const noexcept;

  std::uint64_t block_, count_;
  bool plans_, touches_;
  std::vector<const block_plan*> followed_;  // with the lock
  std::byte* memory_ = nullptr;
  fixed_array<slot_record> slots_;
  fixed_array<std::uint32_t> chains_;
  std::atomic<std::uint64_t> clock_{1};  // one more for each block that comes
  std::uint64_t hand_ = 0;               // the slot from which on `least_needed` looks
  std::mutex mutex_;
  std::condition_variable changed_;
};

}  // namespace penstock::inline v0_1::detail::blocks

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/cache/memory_blocks.ipp>
#endif
