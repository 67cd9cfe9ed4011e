// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/storage/cache/next_uses.hpp>
#include <penstock/storage/sigbus_guard.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace penstock::inline v0_1::detail::blocks {

/// The bytes that have a checksum of their own. A read compares all of each that it touches, so they are few.
inline constexpr std::uint64_t piece_size = 32'768;

/// The checksum of bytes, which depends on a seed.
using checksum_call = std::uint64_t (*)(const void* bytes, std::size_t size, std::uint64_t seed) noexcept;

/// What identifies a block: a hash of its object's name and version, and of its number.
struct key {
  std::uint64_t high = 0, low = 0;
  friend bool operator==(const key&, const key&) = default;
};

/// What a folder of blocks is made for; it has room for `slots` blocks.
struct shape {
  std::uint64_t block = 0;  ///< bytes of a block, a multiple of `piece`
  std::uint64_t piece = 0;  ///< bytes that have a checksum
  std::uint64_t slots = 0;

  [[nodiscard]] std::uint64_t pieces() const noexcept { return piece == 0 ? 0 : block / piece; }
  friend bool operator==(const shape&, const shape&) = default;
};

enum class phase : std::uint32_t { free, filling, full };

/// A slot as it was seen. Its state is another one as soon as the slot is used for something else.
struct place {
  std::uint32_t slot = 0, state = 0;

  [[nodiscard]] phase now() const noexcept { return static_cast<phase>(state & 3); }
};

/// How a copy of bytes of a block went.
enum class copied { whole, absent, moved, damaged };

/// The largest number up to a maximum that fits, if all smaller ones do.
template <class Fits>
[[nodiscard]] std::uint64_t largest(std::uint64_t maximum, Fits&& fits) {
  std::uint64_t low = 0;
  while (low < maximum) {
    const std::uint64_t middle = low + (maximum - low + 1) / 2;
    if (fits(middle))
      low = middle;
    else
      maximum = middle - 1;
  }
  return low;
}
inline constexpr std::uint64_t max_slots = std::uint64_t{1} << 30;

/// A slot that another block may have: when it was used, 0 if it is free, and how far away its next use is.
struct candidate {
  std::uint64_t use = 0, distance = 0;
};
/// A free slot, or the one whose block is needed last, and of several of these the one that was used longest
/// ago: of up to 4096 slots from `hand` on, which goes on behind them, so that a large cache costs no more.
/// `look(slot)` returns a `candidate`, or nothing. None if that is all it returns.
template <class Look>
[[nodiscard]] std::optional<std::uint32_t> least_needed(std::uint64_t slots, std::uint64_t& hand,
                                                        Look&& look) {
  constexpr std::uint64_t maximum = 4096;
  std::optional<std::uint32_t> found;
  candidate best;
  for (std::uint64_t looks = 0; looks < slots; ++looks) {
    if (found && (best.use == 0 || looks >= maximum)) break;
    const auto here = static_cast<std::uint32_t>(hand);
    hand = hand + 1 == slots ? 0 : hand + 1;
    const std::optional<candidate> one = look(here);
    if (!one || (found && one->use != 0 && one->distance < best.distance)) continue;
    if (found && one->use != 0 && one->distance == best.distance && one->use >= best.use) continue;
    found = here;
    best = *one;
  }
  return found;
}

/// The index of a folder of blocks, in memory that all processes of a node map: which block is in which slot,
/// when it was used last and is needed next, and the checksums of its pieces.
///
/// A slot is free, or being filled by one process, or full. Its state is a generation and one of these; it
/// goes to the next generation when it gets another block, so that who has read something and finds the state
/// unchanged has read that block. Members that change which block is where are called by one thread of one
/// process at a time, who holds the lock of the folder: `begin_change` to `end_change`. If one died in
/// between, the next one finds that out, and makes the chains of the table from the slots again.
class block_index {
 public:
  static constexpr std::uint32_t version = 2;

  [[nodiscard]] static std::uint64_t bytes(const shape& of) noexcept { return layout(of).end; }
  /// How many slots there are within a limit of bytes, index and `data_head` included.
  [[nodiscard]] static std::uint64_t slots_within(std::uint64_t limit, std::uint64_t block,
                                                  std::uint64_t piece) noexcept;

  /// The bytes before the blocks in their file, whose head says which index they belong to.
  static constexpr std::uint64_t data_head = 4096;
  /// The head of the file of the blocks that belong to an index with this number.
  [[nodiscard]] static std::array<std::byte, 64> data_head_of(std::uint64_t pair) noexcept;
  /// Whether the file of the blocks, of which these are the first bytes, may be emptied: it is ours, or has
  /// nothing in it.
  [[nodiscard]] static bool is_data(const std::byte* first, std::size_t size) noexcept;

  enum class head { empty, ready, foreign, other_version };
  /// Of the first `size` bytes of a file, at most 4096.
  [[nodiscard]] static head look(const std::byte* first, std::size_t size, shape& found,
                                 std::uint32_t& found_version) noexcept;

  /// The head of an empty index, whose other bytes are all 0; it is `ready` as soon as `make_ready` is
  /// called.
  [[nodiscard]] static std::array<std::byte, 80> index_head_of(const shape& what,
                                                               std::uint64_t pair) noexcept;

  /// Refers to `bytes(of)` bytes; does not look at them.
  block_index(std::byte* memory, const shape& of) noexcept : memory_(memory), shape_(of), layout_(of) {}
  void make_ready() const noexcept;

  [[nodiscard]] const shape& of() const noexcept { return shape_; }
  /// The number that the file of the blocks has, too.
  [[nodiscard]] std::uint64_t pair() const noexcept;
  [[nodiscard]] next_uses next() const noexcept { return {memory_ + layout_.next, shape_.slots}; }
  [[nodiscard]] std::optional<key> block_in(place seen) const noexcept;

  // ---- any thread of any process
  [[nodiscard]] place look_at(std::uint32_t slot) const noexcept;
  [[nodiscard]] bool same(place seen) const noexcept { return look_at(seen.slot).state == seen.state; }
  /// Like `same`, for a caller that has read the slot's bytes: all of these reads come before it.
  [[nodiscard]] bool still_same(place seen) const noexcept {
    order_reads();
    return same(seen);
  }
  [[nodiscard]] std::optional<place> full_of(std::uint32_t slot, const key& what) const noexcept;
  [[nodiscard]] std::uint64_t sum(std::uint32_t slot, std::uint64_t piece) const noexcept;
  /// Says in a line of `next` where its run stands and how long a row of the run takes, and of each slot, as
  /// far as that is not known, when it is needed next: `when(who, block)`.
  void stand_at(std::uint32_t row, std::uint64_t run_row, std::uint64_t ns_per_row,
                next_use (*when)(const void* who, const key& block), const void* who) const;
  void touch(std::uint32_t slot) const noexcept;
  /// The word that changes when a slot does.
  [[nodiscard]] std::uint32_t* word_of(std::uint32_t slot) const noexcept;

  // ---- who fills a slot
  void set_sum(std::uint32_t slot, std::uint64_t piece, std::uint64_t sum) const noexcept;
  /// The slot is full. False if it was taken away.
  [[nodiscard]] bool publish(place mine) const noexcept;

  // ---- who holds the lock of the folder
  /// Makes the chains anew if the one before died while it changed them; returns whether it did.
  bool begin_change() const noexcept;
  void end_change() const noexcept;
  /// The slot that has a block or is being filled with it.
  [[nodiscard]] std::optional<place> find(const key& what) const noexcept;
  /// The slot for another block, or a full one that goes without. None if all are being filled.
  [[nodiscard]] std::optional<place> least_needed(const outlook& future,
                                                  bool only_full = false) const noexcept;
  /// Gives a slot to a block, which is to be filled; returns its new state.
  place take(std::uint32_t slot, const key& what) const noexcept;
  void drop(std::uint32_t slot) const noexcept;
  /// Whether `least_needed` passes over a slot, because it is being filled, or who filled it died.
  [[nodiscard]] bool held(std::uint32_t slot) const noexcept;
  /// From now on it does not.
  void settle(std::uint32_t slot) const noexcept;

 private:
  /// The first page of the file. Numbers are in the machine's byte order, which `order` tells.
  struct head_record {
    static constexpr std::string_view name{"PENSTOCK BLOCKS\0", 16}, data_name{"PENSTOCK CACHED\0", 16};
    static constexpr std::uint32_t order_mark = 0x01020304;
    static constexpr std::uint64_t bytes = 4096;

    char magic[16];
    std::uint32_t version, order;
    std::uint64_t block, piece, slots;
    std::uint32_t ready, changing;
    std::uint64_t clock;  // one more for each block that comes
    std::uint64_t pair;   // the file of the blocks has it, too
    std::uint64_t hand;   // the slot from which on `least_needed` looks next
  };
  struct slot_record {
    std::uint32_t state;
    std::uint32_t next;  // in its chain: the number of a slot and 1, or 0
    std::uint64_t high, low;
  };
  /// The use of a slot that is being filled.
  static constexpr std::uint64_t used_now = ~std::uint64_t{0};

  /// Where the parts begin: the head, then chains, slots, uses, checksums and next uses.
  struct layout {
    explicit layout(const shape& what) noexcept;
    std::uint64_t pieces, chains, slots, uses, sums, next, end;
  };

  template <class T>
  [[nodiscard]] T& at(std::uint64_t part, std::uint64_t number) const noexcept {
    return reinterpret_cast<T*>(memory_ + part)[number];
  }
  [[nodiscard]] head_record& head_of() const noexcept { return *reinterpret_cast<head_record*>(memory_); }
  [[nodiscard]] slot_record& record(std::uint32_t slot) const noexcept {
    return at<slot_record>(layout_.slots, slot);
  }
  [[nodiscard]] std::uint32_t& chain(const key& what) const noexcept;
  [[nodiscard]] std::uint64_t& use(std::uint32_t slot) const noexcept {
    return at<std::uint64_t>(layout_.uses, slot);
  }
  [[nodiscard]] std::uint64_t& sum_at(std::uint32_t slot, std::uint64_t piece) const noexcept {
    return at<std::uint64_t>(layout_.sums, slot * layout_.pieces + piece);
  }
  [[nodiscard]] static key key_of(slot_record& one) noexcept;
  void link(std::uint32_t slot) const noexcept;
  void unlink(std::uint32_t slot) const noexcept;
  // A new generation.
  place set_state(std::uint32_t slot, phase next) const noexcept;
  void rebuild() const noexcept;

  std::byte* memory_;
  shape shape_;
  layout layout_;
};

}  // namespace penstock::inline v0_1::detail::blocks

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/cache/block_index.ipp>
#endif
