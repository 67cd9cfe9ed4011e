// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/storage/disk_cache.hpp>

#include <chrono>
#include <cstdint>
#include <string>

namespace penstock::inline v0_1 {
namespace detail::blocks {
class memory_blocks;
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
  struct home;

  /// Those of this process, made now if they were not there.
  [[nodiscard]] detail::blocks::memory_blocks& blocks() const;

  std::uint64_t limit_;
  memory_cache_options options_;
  shared<home> home_;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/memory_cache.ipp>
#endif
