// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<xxhash.h>)
#error "penstock/storage/cached.hpp needs xxHash: link penstock::cache"
#endif

#include <penstock/core/bytes.hpp>
#include <penstock/storage/cache/block_cache.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/disk_cache.hpp>
#include <penstock/storage/memory_cache.hpp>
#include <penstock/storage/resilience/retried_session.hpp>
#include <penstock/storage/session_report.hpp>
#include <penstock/storage/session_view.hpp>
#include <penstock/storage/sidecar.hpp>
#include <penstock/storage/threaded_reads.hpp>

#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

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
  requires std::same_as<Near, disk_cache> || std::same_as<Near, memory_cache>
class cached {
  using reads = detail::blocks::block_cache<Near, Far>;
  struct state {
    state(const Far& given, const Near& near)
        : far(given), session(far, near), threads(session_view(session), far.names(), 16) {}

    ~state() { end(); }
    void cancel() noexcept {
      threads.cancel();
      session.stop_waiting();
    }
    void end() noexcept {
      session.end();
      cancel();
      penstock::end_reads(session.far());
    }

    Far far;  // whose names the session refers to
    reads session;
    threaded_reads threads;
  };

 public:
  static constexpr bool names_are_paths = is_local<Far>();

  /// What a run reads through; see `background_session`.
  class session {
   public:
    static constexpr session_traits traits = {.latency = true};

    [[nodiscard]] std::uint64_t size(object_id id) const { return state_->session.size(id); }
    [[nodiscard]] object_version version(object_id id) const { return state_->session.version(id); }
    void read(object_id id, std::uint64_t offset, mutable_bytes into) const {
      state_->session.read(id, offset, into);
    }
    [[nodiscard]] bool tagged(object_id id) const { return penstock::is_tagged(state_->session.far(), id); }
    void confirm(object_id id) const { state_->session.confirm(id); }
    [[nodiscard]] access_plan_sink access_plan() const noexcept { return state_->session.access_plan(); }
    void plan_read(object_id id, std::uint64_t offset, std::uint64_t size, std::uint64_t row) const {
      state_->session.plan_read(id, offset, size, row);
    }
    /// Whether an object's bytes are in memory, so that fetching them ahead would only make another copy.
    [[nodiscard]] bool resident(object_id id) const { return state_->session.resident(id); }
    void read_many(std::span<const read_request> requests, read_listener listener) const noexcept {
      state_->threads.read_many(requests, listener);
    }
    void cancel() const noexcept {
      state_->cancel();
      cancel_reads(state_->session.far());
    }
    void end_reads() const noexcept { state_->end(); }
    /// What the cache did, and what the other storage did.
    [[nodiscard]] session_report report() const {
      session_report all = report_of(state_->session.far());
      all.counted = true;
      all.max_in_flight = 0;
      all.oldest.reset();
      all.names = state_->far.names();
      state_->session.add_to(all.counters);
      return all;
    }
    [[nodiscard]] session_report limits() const {
      session_report all = limits_of(state_->session.far());
      all.max_in_flight = 0;
      return all;
    }

   private:
    friend cached;
    session(const Far& far, const Near& near) : state_(new state(far, near)) {}

    std::unique_ptr<state> state_;
  };

  cached(Far far, Near near) : far_(std::move(far)), near_(std::move(near)) {}

  [[nodiscard]] std::span<const std::string> names() const { return far_.names(); }
  /// Whether the names are paths in the local file system.
  [[nodiscard]] bool local() const { return is_local(far_); }
  [[nodiscard]] session connect() const { return session(far_, near_); }
  /// See `has_sidecars`.
  [[nodiscard]] cached sidecars(sidecar which) const
    requires(has_sidecars<Far>())
  {
    return cached(far_.sidecars(which), near_);
  }
  /// See `renaming_storage`.
  [[nodiscard]] cached with_names(std::vector<std::string> names) const
    requires renaming_storage<Far>
  {
    return cached(far_.with_names(std::move(names)), near_);
  }
  [[nodiscard]] std::string describe() const {
    return detail::describe_around("cached", far_, near_.describe());
  }

 private:
  Far far_;
  Near near_;
};

template <class Far, class Near>
cached(Far, Near) -> cached<Near, Far>;

}  // namespace penstock::inline v0_1
