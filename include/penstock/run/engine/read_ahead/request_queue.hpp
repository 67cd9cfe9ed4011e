// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/run/engine/tuning/live_limits.hpp>
#include <penstock/run/engine/workers/observers.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/range_store.hpp>
#include <penstock/storage/session_view.hpp>
#include <penstock/storage/threaded_reads.hpp>

#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace penstock::inline v0_1 {

/// How many requests to have in flight: more as long as that brings more bytes per second, fewer where it
/// brings nothing, and half as many when a store asks for fewer. Arithmetic only: the caller says what
/// happened, and when.
///
/// It begins with 16 and doubles while each doubling makes the store at least 30 % faster, which takes one
/// round of requests each. Then it compares now and then: a quarter more requests are kept if they bring at
/// least half as much more, a fifth fewer if they lose at most 3 %. Rounds in which the caller had nothing to
/// request at times say nothing, and are left out.
/// Source: the slow start of TCP; hill climbing on throughput, because requests differ too much in size to
/// compare their latencies.
class request_limit {
 public:
  explicit request_limit(std::size_t maximum) noexcept;

  /// Requests that may be in flight now, from 1 to `maximum`.
  [[nodiscard]] std::size_t now() const noexcept { return now_ < maximum_ ? now_ : maximum_; }
  /// Sets the upper limit, such as that of a session that allows fewer.
  void bound(std::size_t maximum) noexcept;
  /// A request begins.
  void begun(std::uint64_t now_ns) noexcept {
    if (since_ == 0) since_ = now_ns;
  }
  /// A request has ended with so many bytes. `waiting`: others wait for the limit.
  void ended(std::uint64_t now_ns, std::uint64_t bytes, bool waiting) noexcept;
  /// The store asked for fewer requests in answer to one that was begun at that time. Several that were in
  /// flight together count once.
  void slow_down(std::uint64_t begun_ns, std::uint64_t now_ns) noexcept;

 private:
  enum class phase : std::uint8_t { doubling, resting, more, fewer };
  static constexpr std::size_t first = 16, short_rest = 4, long_rest = 64;

  void measure_again(std::size_t skipped) noexcept;
  void round_over(double per_second) noexcept;
  void settle(bool kept, double per_second) noexcept;
  void try_other(double per_second) noexcept;

  std::size_t maximum_, now_, before_ = 0;  // before the change that is being tried
  phase phase_ = phase::doubling;
  bool more_is_next_ = true;
  std::size_t rests_ = 0, rest_ = short_rest;  // rounds until the next change is tried
  double best_ = 0;                            // bytes per second that a change is compared with
  std::size_t ended_ = 0, skips_ = 0;          // in this round
  std::uint64_t since_ = 0, bytes_ = 0;
  std::uint64_t slowed_ns_ = 0;
  std::size_t after_slow_ = short_rest;  // rests after the store asked for fewer, longer each time
};

/// The requests of a fetcher, begun in the order in which they were added. Those to sessions with latency
/// wait here while as many as `request_limit` allows are in flight; they are begun by whichever thread finds
/// that one may, one thread at a time.
///
/// Cost: two locks per request; no allocation once as many were here before.
/// Threads: `target_of`, `make_room`, `add` and `start` belong to the fetching thread; any may call the
/// others, and the sessions report from theirs.
class request_queue {
 public:
  /// The most requests in flight if neither the session nor the options say.
  static constexpr std::size_t usual = 64;

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
  /// `live`: where the limit is changed while the queue works; must outlive it.
  request_queue(range_store& store, std::optional<std::size_t> maximum, const live_limits* live = nullptr)
      : store_(&store), limit_(maximum.value_or(usual)), maximum_(maximum), live_(live) {}
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
  static constexpr std::size_t max_per_call = 64;

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
  const live_limits* live_;
  std::size_t in_flight_ = 0;
  std::uint64_t cancels_ = 0;
  bool passing_ = false, stopped_ = false;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/run/engine/read_ahead/request_queue.ipp>
#endif
