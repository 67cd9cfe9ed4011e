// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<xxhash.h>)
#error "penstock/storage/cached.hpp needs xxHash: link penstock::cache"
#endif

#include <penstock/storage/cache/block_cache.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/detail/storage_around.hpp>
#include <penstock/storage/detail/threaded_session.hpp>
#include <penstock/storage/disk_cache.hpp>
#include <penstock/storage/memory_cache.hpp>

#include <concepts>
#include <string>
#include <utility>

namespace penstock::inline v0_1 {

/// Keeps the blocks of another storage in a cache near by: on the disk of a node, so that all of its
/// processes fetch each block once, or in the memory of this process.
///
///     const auto shards = memory_files().add("a.tar", std::string(10'240, '\0'));
///     const cached near(simulated_storage(shards, {}), disk_cache("cache_folder", 64_MiB));
///     const cached nearer(near, memory_cache(16_MiB, {.block = 1_MiB}));
///     const std::uint64_t size = nearer.connect().size(0);
///
/// In: any storage, and a `disk_cache` or a `memory_cache`. A read of a block that is not there fetches the
/// whole block; whoever else wants it meanwhile, in this process or (of a folder) another one, waits for
/// that.
/// What is on the disk is compared with checksums (XXH3, 64 bits, for each 32 KiB); a piece that does not
/// match is fetched again. What is in memory has none. A block is
/// known by its object's name (of a local file the whole path), size and stamp, so an object that was
/// replaced is another one. Blocks of an object without a stamp, of which nobody can say that, are of one
/// session alone.
/// The order, the bytes, the versions and the errors are those of the other storage. Where the cache cannot
/// help, such as on a full or broken disk, if a process that changes the folder is stopped for 10 s, or if
/// all of its places are being filled, reads go past it, and are counted.
/// A process that dies leaves nothing to clean: the system takes its locks away, what it was fetching is
/// fetched by the next one that wants it, and an index that it was changing is put in order.
/// Errors: those of the other storage, and those of the cache when a run begins. If a fetch fails, who asked
/// for it gets the error, and the next one that waits tries again. A read that waits for somebody else when
/// it is cancelled, or when the session ends, is errc::stopped.
/// Cost: a read from a folder takes the checksums of the pieces that it touches, whole ones, and one copy:
/// from a mapping if all of the object is in memory, otherwise with a system call, and a second copy of
/// pieces at both ends that are not wanted whole. A thread that goes on in the piece that it compared last
/// does not compare it again. A read from memory is one copy, and two atomic additions for each block. No
/// lock, no allocation; from memory a lock the first time that a session reads a block. A block that comes to
/// a folder: one copy in memory, which is written; to memory: none. Index of a folder: 8 bytes for each
/// 32 KiB, and some 550 for each block.
/// Keeps: of a folder, memory for a block per thread that fetches one, 64 KiB per thread that reads, and 4
/// bytes for each 32 KiB of the cache with `verify::once`; 4 bytes per session for each block of what it
/// reads; where a run says what it will read, some 60 more, and up to 48 for each of a million reads.
/// Threads: any number of threads may use a session, and any number of processes a folder. Reads in the
/// background are those of 16 threads; with a folder, `ahead` more fetch what is needed soon. A child after
/// `fork` has no session.
/// Source: the checksum is that of xxHash 0.8, github.com/Cyan4973/xxHash.
template <class Near, storage Far>
  requires(std::same_as<Near, disk_cache> || std::same_as<Near, memory_cache>)
class cached : public detail::storage_around<cached<Near, Far>, Far> {
 public:
  /// What a run reads through; see `background_session`.
  using session = detail::threaded_session<detail::blocks::block_cache<Near, Far>>;

  cached(Far far, Near near)
      : detail::storage_around<cached<Near, Far>, Far>(std::move(far)), near_(std::move(near)) {}

  [[nodiscard]] session connect() const { return session(16, this->inner(), near_); }
  [[nodiscard]] std::string describe() const { return this->describe_as("cached", near_.describe()); }

 private:
  Near near_;
};

template <class Far, class Near>
cached(Far, Near) -> cached<Near, Far>;

}  // namespace penstock::inline v0_1
