// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/storage/cache/block_index.hpp>
#include <penstock/storage/cache/block_plan.hpp>
#include <penstock/storage/cache/memory_blocks.hpp>
#include <penstock/storage/disk_cache.hpp>
#include <penstock/storage/reads/wait_stops.hpp>

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

namespace penstock::inline v0_1 {
namespace detail::blocks {
class session_blocks;
}  // namespace detail::blocks

/// How a `memory_cache` keeps its blocks.
struct memory_cache_options {
  std::uint64_t block = 8_MiB;  ///< bytes of a block: a power of two from 64 KiB to 16 MiB
  eviction evict = eviction::belady;
  /// How long a read waits for another one that fetches the same block, before it reads past the cache.
  std::chrono::milliseconds max_wait{60'000};
};

/// Memory that keeps blocks of other storages, for `cached`: for all runs of this process that have a copy of
/// the value.
///
///     const memory_cache near(64_MiB, {.block = 1_MiB});
///     const auto same = near;  // the same blocks
///
/// In: the bytes that it may have, its index and what is being fetched included. A block takes the room of a
/// whole one, also the last of an object, so objects that are smaller than a block want smaller blocks. The
/// room is reserved when the first run begins, and taken from the system as blocks come; it is given back
/// with the last copy of the value and the last run. There are no checksums: memory is trusted.
/// Errors: errc::argument, for options that make no sense; and when a run begins, if the system does not
/// have that much.
/// Keeps: 64 bytes for each block, and 4 to 8 more, within the limit.
/// Threads: any number. A child after `fork` begins with an empty one.
class memory_cache {
 public:
  explicit memory_cache(std::uint64_t limit, memory_cache_options options = {});

  [[nodiscard]] std::uint64_t limit() const noexcept { return limit_; }
  [[nodiscard]] const memory_cache_options& options() const noexcept { return options_; }
  [[nodiscard]] std::string describe() const;

 private:
  friend class detail::blocks::session_blocks;
  /// The blocks of each process that has the value: after a `fork`, those of the parent may be locked for
  /// ever.
  struct home {
    struct blocks_of_process {
      blocks_of_process(std::uint64_t limit, const memory_cache_options& options)
          : blocks(limit, options.block, options.evict) {}
      pid_t process = ::getpid();
      detail::blocks::memory_blocks blocks;
      blocks_of_process* before = nullptr;
    };

    ~home();

    std::atomic<blocks_of_process*> newest{nullptr};
  };

  /// Those of this process, made now if they were not there.
  [[nodiscard]] detail::blocks::memory_blocks& blocks() const;

  std::uint64_t limit_;
  memory_cache_options options_;
  shared<home> home_;
};

namespace detail::blocks {

/// The blocks of a `memory_cache` as one session sees them, with the members of `block_folder`. Checksums,
/// and what is there to do ahead of time, are for folders: a run that fetches ahead does so to memory itself.
class session_blocks {
 public:
  /// What goes from here is read there, so the other storage hears of everything.
  static constexpr bool tells_far = true;

  session_blocks(const memory_cache& where, checksum_call) : where_(where), blocks_(where_.blocks()) {}

  [[nodiscard]] std::uint64_t block_size() const noexcept { return blocks_.block_size(); }
  [[nodiscard]] std::uint64_t evicted() const noexcept { return evicted_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t held() const noexcept { return 0; }

  [[nodiscard]] std::optional<unsigned> places_missing(const key& what, std::atomic<std::uint32_t>& hint,
                                                       std::uint64_t, std::uint64_t) noexcept;
  [[nodiscard]] copied copy(const key& what, std::atomic<std::uint32_t>& hint, std::uint64_t,
                            std::uint64_t offset, mutable_bytes into, bool, wait_stops::moment) noexcept {
    const auto found = blocks_.find(what, hint);
    if (!found) return copied::absent;
    std::memcpy(into.data(), found.bytes() + offset, into.size());
    return copied::whole;
  }

  [[nodiscard]] wait_stops& stops() noexcept { return stops_; }
  void stop_waiting() noexcept;
  void end() noexcept;
  void leave(const block_plan& plan) noexcept {
    if (follows_) blocks_.leave(plan);
  }

  struct answer {
    using enum memory_blocks::answer::kind;
    memory_blocks::answer::kind is;
    memory_blocks::answer where;
  };
  [[nodiscard]] answer ask(const key& what, wait_stops::moment, next_use) noexcept;
  [[nodiscard]] std::byte* room(const memory_blocks::answer& mine) noexcept { return blocks_.room(mine); }
  bool fill(const memory_blocks::answer& mine, const key&, bytes_view, wait_stops::moment) noexcept;
  void give_up(const memory_blocks::answer& mine, wait_stops::moment) noexcept { blocks_.give_up(mine); }
  [[nodiscard]] bool wait(const memory_blocks::answer& other, std::chrono::steady_clock::time_point late,
                          wait_stops::moment begun) noexcept;

  /// For the thread that plans.
  void follow(const block_plan& plan);
  void stand_at(std::uint64_t, bool, const block_plan&) const noexcept {}
  void forget() const noexcept {}

 private:
  memory_cache where_;
  memory_blocks& blocks_;
  bool follows_ = false;
  wait_stops stops_;
  std::atomic<std::uint64_t> evicted_{0};
};

}  // namespace detail::blocks

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/memory_cache.ipp>
#endif
