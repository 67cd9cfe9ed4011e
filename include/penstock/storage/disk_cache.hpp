// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/storage/cache/block_index.hpp>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace penstock::inline v0_1 {

/// Which block of a cache goes when another one needs its place.
enum class eviction {
  /// The one that all runs that share the cache need last, as far as they know; of several the one that was
  /// used longest ago. Who fetches ahead knows: a run with workers, and without `prefetch(0)`, over a source
  /// that lists what it will read. What others read goes first. Beside a process that is stopped, and says of
  /// no new block when it needs it, this is `lru`.
  belady,
  lru,  ///< the one that was used longest ago
  fifo  ///< the one that has been there longest
};

/// When a cache compares what it reads with its checksums.
enum class verify {
  each_read,  ///< each time
  once        ///< the first time that a session reads it
};

/// How a `disk_cache` keeps its blocks.
struct disk_cache_options {
  std::uint64_t block = 8_MiB;  ///< bytes of a block: a power of two from 128 KiB to 16 MiB
  eviction evict = eviction::belady;
  penstock::verify verify = verify::each_read;
  /// How long a read waits for another one that fetches the same block, before it reads past the cache.
  std::chrono::milliseconds max_wait{60'000};
  /// How many blocks are fetched at once before they are asked for, if it is known what will be needed.
  std::size_t ahead = 4;
};

namespace detail::blocks {

/// Throws errc::argument for options of a cache that make no sense, and for a limit within which
/// `slots_within` finds no room for a block; waits get at most a year.
template <class Options, class SlotsWithin>
void check_cache(std::string_view called, std::uint64_t least, std::uint64_t limit, Options& options,
                 SlotsWithin&& slots_within) {
  if (!std::has_single_bit(options.block) || options.block < least || options.block > 16_MiB)
    throw error(errc::argument, {"blocks of a ", called, " have a power of two of bytes from ", least / 1_KiB,
                                 " KiB to 16 MiB, not ", options.block, " bytes"});
  if (options.max_wait.count() < 0) throw error(errc::argument, {called, " cannot wait for less than 0 ms"});
  constexpr std::chrono::hours year{24 * 365};
  options.max_wait = std::min(options.max_wait, std::chrono::milliseconds(year));
  if (slots_within(limit, options.block) == 0)
    throw error(errc::argument, {"a ", called, " of ", limit, " bytes has no room for a block of ",
                                 options.block, " bytes and its index; raise the limit"});
}

}  // namespace detail::blocks

/// A folder that keeps blocks of other storages, for `cached`: one for all processes of a node.
///
///     const disk_cache near("cache_folder", 64_MiB, {.block = 1_MiB});
///
/// In: a folder, which is made if it is not there, and the bytes that it may have, its index included. The
/// folder has two files, which belong to their user alone: an index that all processes map, and the blocks.
/// Several jobs may share a folder; it keeps blocks of any number of storages. Up to 64 sessions say what
/// they need next; of more nobody knows. What else is in the folder stays as it is.
/// Errors, when a run begins: errc::argument for options that make no sense, and for a folder that is another
/// user's or may be written to by others, is of another version, is in use with another limit or another size
/// of blocks, or has files of these names that are something else; for a file system without such locks;
/// errc::io for one that cannot be made or written. If nobody uses a folder that has another limit or another
/// size of blocks, it is emptied.
/// Needs a local file system with locks that belong to open files (Linux 3.15).
class disk_cache {
 public:
  disk_cache(std::string folder, std::uint64_t limit, disk_cache_options options = {})
      : folder_(std::move(folder)), limit_(limit), options_(options) {
    if (folder_.empty()) throw error(errc::argument, "disk_cache needs the path of a folder");
    if (options_.ahead > 64)
      throw error(errc::argument,
                  {"a disk_cache fetches at most 64 blocks at once ahead, not ", options_.ahead});
    detail::blocks::check_cache(
        "disk_cache", 128_KiB, limit_, options_, [](std::uint64_t most, std::uint64_t block) {
          return detail::blocks::block_index::slots_within(most, block, detail::blocks::piece_size);
        });
  }

  [[nodiscard]] const std::string& folder() const noexcept { return folder_; }
  [[nodiscard]] std::uint64_t limit() const noexcept { return limit_; }
  [[nodiscard]] const disk_cache_options& options() const noexcept { return options_; }
  [[nodiscard]] std::string describe() const {
    return detail::text({"disk_cache(", folder_, ", ", limit_, " bytes)"});
  }

 private:
  std::string folder_;
  std::uint64_t limit_;
  disk_cache_options options_;
};

}  // namespace penstock::inline v0_1
