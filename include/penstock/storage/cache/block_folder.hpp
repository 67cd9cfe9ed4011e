// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/owned.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/storage/cache/block_index.hpp>
#include <penstock/storage/cache/next_uses.hpp>
#include <penstock/storage/disk_cache.hpp>
#include <penstock/storage/reads/wait_stops.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace penstock::inline v0_1 {
namespace detail::blocks {

/// The checksum of bytes, which depends on a seed.
using checksum_call = std::uint64_t (*)(const void* bytes, std::size_t size, std::uint64_t seed) noexcept;

/// The blocks of a `disk_cache` as one session sees them. All processes that use the folder see the same.
///
/// Whoever fills a slot holds a lock of one byte of the index file, which the system takes away when the
/// process ends, however it ends. The same holds for the lock of the folder. So nothing is left behind by a
/// process that dies: its slot is filled by the next one that wants the block.
/// Threads: any number.
class block_folder {
 public:
  /// Opens the folder, or makes it; see `disk_cache` for what it throws.
  block_folder(const disk_cache& where, checksum_call checksum);
  block_folder(const block_folder&) = delete;
  block_folder& operator=(const block_folder&) = delete;
  ~block_folder();

  [[nodiscard]] std::uint64_t block_size() const noexcept;

  /// The block, if it is there; `hint` is where it was seen last, and is kept up to date.
  [[nodiscard]] std::optional<place> find(const key& what, std::atomic<std::uint32_t>& hint) noexcept;

  /// Whether the byte at an offset of a block is in memory, so that a read would not wait for the disk.
  [[nodiscard]] bool in_memory(place where, std::uint64_t offset) const noexcept;

  enum class copied { whole, moved, damaged };
  /// Copies bytes of a block of `size` bytes, from `offset` on. `moved`: something else is in the slot now.
  /// `resident`: the block is in memory, and a mapping is the faster way to it.
  [[nodiscard]] copied copy(place from, const key& what, std::uint64_t size, std::uint64_t offset,
                            mutable_bytes into, bool resident);

  /// Ends the waits of this session. Members that may wait for the lock of the folder are told when their
  /// caller began; if that wait is ended they do what they do if the lock cannot be had in time.
  [[nodiscard]] wait_stops& stops() noexcept;

  /// What somebody has who asked for a block that was not there.
  struct answer {
    enum kind { here, mine, other, nothing } is = nothing;
    place where{};
  };
  /// `here`: it is there now. `mine`: this caller fills it, and must call `fill` or `give_up`. `other`:
  /// somebody fills it. `nothing`: no slot can be had. `when`: when this session's run needs it next.
  /// With `ahead` it is not needed yet, so no block goes for it that is needed sooner.
  [[nodiscard]] answer ask(const key& what, wait_stops::moment begun, next_use when = {}, bool ahead = false);
  /// Writes a block into its slot. False: there was no room on the disk, and the slot is free.
  bool fill(place mine, const key& what, bytes_view bytes, wait_stops::moment begun);
  void give_up(place mine, wait_stops::moment begun) noexcept;
  /// Waits for somebody else to fill a slot, at most so long. Returns whether its state is another one.
  bool wait(place other, std::uint64_t max_ns) noexcept;
  /// Nobody waits for this any more: `ask` says `nothing`.
  void waited_in_vain(place other) noexcept;

  /// Says where the run of this session stands, and how long a row of the run takes, so that blocks go by
  /// when they are needed. `next(who, block)` tells when that is. Called by one thread at a time.
  void stand_at(std::uint64_t run_row, std::uint64_t ns_per_row,
                next_use (*next)(const void* who, const key& block), const void* who);
  /// What `next` said is void. For the thread that calls `stand_at`.
  void forget() noexcept;
  /// How many blocks there is room for.
  [[nodiscard]] std::uint64_t slots() const noexcept;
  /// How many blocks went for others.
  [[nodiscard]] std::uint64_t evicted() const noexcept;
  /// Frees a slot whose bytes are damaged, if it still is what it was.
  void discard(place damaged, wait_stops::moment begun);

 private:
  struct state;
  owned<state> state_;
};

}  // namespace detail::blocks
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/cache/block_folder.ipp>
#endif
