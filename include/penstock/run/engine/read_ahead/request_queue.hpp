// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/run/engine/read_ahead/request_limit.hpp>
#include <penstock/run/engine/workers/observers.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/range_store.hpp>
#include <penstock/storage/session_view.hpp>
#include <penstock/storage/threaded_reads.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace penstock::inline v0_1 {

/// The requests of a fetcher, begun in the order in which they were added. Those to sessions with latency
/// wait here while as many as `request_limit` allows are in flight; they are begun by whichever thread finds
/// that one may, one thread at a time.
///
/// Cost: two locks per request; no allocation once as many were here before.
/// Threads: `target_of`, `make_room`, `add` and `start` belong to the fetching thread; any may call the
/// others, and the sessions report from theirs.
class request_queue {
 public:
  /// A session, with threads if it does not read in the background.
  class target {
   public:
    explicit target(const session_view& session);
    void read_many(std::span<const read_request> requests, read_listener listener);
    void cancel() noexcept;

   private:
    friend request_queue;
    static constexpr std::size_t threads = 8;

    session_view session_;
    std::unique_ptr<threaded_reads> threads_;
    std::uint64_t slow_downs_ = 0;  // that it had counted when we last looked
  };

  /// Results go to `store`, which must outlive the queue. At most `maximum` requests are in flight at once;
  /// unset: as many as their session lets through, 64 if it says nothing.
  request_queue(range_store& store, std::optional<std::size_t> maximum)
      : store_(&store), limit_(maximum.value_or(usual)), maximum_(maximum) {}
  request_queue(const request_queue&) = delete;
  request_queue& operator=(const request_queue&) = delete;

  /// Reports each request to the observers of a run.
  void observe(const run_watch& watch) noexcept { watch_ = &watch; }
  /// The target for a session; null if memory is short.
  [[nodiscard]] target* target_of(const session_view& session) noexcept;
  /// Makes room for so many more requests. May throw std::bad_alloc.
  void make_room(std::size_t requests);
  /// Adds a request for this row and later ones, which is none before that of the last one; it begins at the
  /// next `start`, or later. The store must know of it (`begin`).
  void add(target& to, object_id object, std::uint64_t offset, mutable_bytes into, range_store::read& read,
           std::uint64_t row) noexcept;
  /// Begins what may begin.
  void start() noexcept;
  /// Ends what waits here, and cancels what is in flight.
  void cancel() noexcept;
  /// Ends what waits here, and begins nothing any more.
  void stop() noexcept { drop_waiting(true); }

  /// How many requests may be in flight now.
  [[nodiscard]] std::size_t max_in_flight() const;
  /// The first row of a request that has not ended; `none` if all have.
  [[nodiscard]] std::uint64_t first_row(std::uint64_t none) const;
  /// The oldest request in flight, or the oldest read of a session that reports it.
  [[nodiscard]] std::optional<open_read> oldest() const;

 private:
  struct item {
    target* to = nullptr;
    object_id object = 0;
    std::uint64_t offset = 0, row = 0, begun_ns = 0;
    mutable_bytes bytes;
    range_store::read* read = nullptr;
    item *next = nullptr, *before = nullptr;
  };
  static constexpr std::size_t max_per_call = 64, usual = 64;

  // The caller of these holds the lock.
  [[nodiscard]] bool may_begin(const item& one);
  void pass_on(std::unique_lock<std::mutex>& held) noexcept;
  void link(item& one) noexcept;
  void unlink(item& one) noexcept;

  void drop_waiting(bool for_good) noexcept;
  void ended(item& one, const std::exception_ptr& failed) noexcept;

  range_store* store_;
  const run_watch* watch_ = nullptr;
  mutable std::mutex lock_;
  std::list<target> targets_;  // grows under the lock
  std::vector<std::unique_ptr<item[]>> items_;
  std::size_t made_ = 0, used_ = 0;
  item* free_ = nullptr;
  item *waiting_ = nullptr, *last_waiting_ = nullptr;
  item *oldest_ = nullptr, *newest_ = nullptr;  // in flight
  request_limit limit_;
  std::optional<std::size_t> maximum_;
  std::size_t in_flight_ = 0;
  std::uint64_t cancels_ = 0;
  bool passing_ = false, stopped_ = false;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/run/engine/read_ahead/request_queue.ipp>
#endif
