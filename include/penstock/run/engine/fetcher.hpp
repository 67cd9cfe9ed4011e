// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/fetched.hpp>
#include <penstock/storage/range_store.hpp>
#include <penstock/storage/session_view.hpp>
#include <penstock/storage/threaded_reads.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace penstock::inline v0_1 {

/// A session to fetch bytes from, type-erased.
class fetched_session {
 public:
  template <storage_session S>
  explicit fetched_session(S& session) noexcept : self_(&session), view_(session), calls_(&calls_of<S>) {}

  [[nodiscard]] const void* self() const noexcept { return self_; }
  [[nodiscard]] session_view view() const noexcept { return view_; }
  /// Whether it is a `background_session`; only those may use `read_many`.
  [[nodiscard]] bool in_background() const noexcept { return calls_->read_many != nullptr; }
  void read_many(std::span<const read_request> requests, read_listener listener) const {
    calls_->read_many(self_, requests, listener);
  }
  /// Ends its reads; where they run in the calling threads, their waits for another attempt, if there are
  /// any.
  void cancel() const noexcept { calls_->cancel(self_); }

 private:
  struct calls {
    void (*read_many)(const void*, std::span<const read_request>, read_listener);
    void (*cancel)(const void*) noexcept;
  };
  template <class S>
  [[nodiscard]] static constexpr calls made_for() noexcept {
    calls made{nullptr, [](const void*) noexcept {}};
    if constexpr (background_session<S>)
      made = {[](const void* s, std::span<const read_request> requests, read_listener listener) {
                at<S>(s).read_many(requests, listener);
              },
              [](const void* s) noexcept { at<S>(s).cancel(); }};
    else if constexpr (requires(S& s) { s.cancel_waits(); })
      made.cancel = [](const void* s) noexcept { at<S>(s).cancel_waits(); };
    return made;
  }
  template <class S>
  static constexpr calls calls_of = made_for<S>();
  template <class S>
  [[nodiscard]] static S& at(const void* session) noexcept {
    return *static_cast<S*>(const_cast<void*>(session));
  }

  const void* self_;
  session_view view_;
  const calls* calls_;
};

/// The ranges of bytes that some samples will be read from, as a reader's `ranges` reports them.
///
/// A session that shows its bytes in place is given a hint instead, and a session whose bytes are already in
/// memory (`warm`) is left alone, since fetching would only make another copy.
class range_list {
 public:
  /// A range, and the turn of the sample that is read from it.
  struct entry {
    fetched_session from;
    std::uint64_t offset, size, turn;
    object_id object;
  };

  /// Sets the turn of the ranges that follow.
  void stand_at(std::uint64_t turn) noexcept { turn_ = turn; }
  template <class Session>
  void operator()(Session& session, object_id object, std::uint64_t offset, std::uint64_t size) {
    if constexpr (viewing_session<Session>) {
      session.will_need(object, offset, size);
    } else {
      if constexpr (warming_session<Session>) {
        if (session.warm(object)) {
          ++warm_;
          return;
        }
      }
      add({fetched_session(session), offset, size, turn_, object});
    }
  }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  /// How many ranges were left out because they are already in memory.
  [[nodiscard]] std::uint64_t warm() const noexcept { return warm_; }
  [[nodiscard]] std::vector<entry>& entries() noexcept { return entries_; }
  void clear() noexcept;

 private:
  void add(const entry& one);

  std::vector<entry> entries_;
  std::uint64_t turn_ = 0, bytes_ = 0, warm_ = 0;
};

/// Reads ranges into a `range_store` before workers ask for them. Nearby ranges of one object become a single
/// read; reads are started in the order of first use, as many at once as the store has room for; for a
/// session that reads only in the calling thread, eight, each in its own thread. A range that cannot be read
/// is left to the worker that needs it, which gets the error at its sample.
///
/// Threads: `fetch` belongs to one thread; the other members say who may call them.
class fetcher {
 public:
  /// See `range_store`.
  fetcher(std::uint64_t bytes, std::uint64_t turns) : store_(bytes, turns) {}
  fetcher(const fetcher&) = delete;
  fetcher& operator=(const fetcher&) = delete;
  ~fetcher() { end_reads(); }

  [[nodiscard]] range_store& store() noexcept { return store_; }
  /// Starts reading what is listed, and clears the list. Waits for room; returns early if the store is
  /// stopped or halted.
  void fetch(range_list& wanted);
  /// Cancels all reads and waits for them to end. No thread may be in `fetch`.
  void end_reads() noexcept;

 private:
  static constexpr std::size_t threads = 8;
  static constexpr std::uint64_t most_between = 8_KiB;  // gaps up to this are read rather than skipped
  static constexpr std::uint64_t most_together = 1_MiB;

  /// One read: entries close together.
  struct piece {
    std::size_t first, last;
    std::uint64_t begin, end, turn;
  };
  struct asked_session {
    fetched_session itself;
    std::unique_ptr<threaded_reads> threads;  // for a session that does not read in the background
  };
  void plan(std::vector<range_list::entry>& wanted);
  [[nodiscard]] bool fetch(const piece& one, const std::vector<range_list::entry>& wanted);
  void submit() noexcept;
  [[nodiscard]] const asked_session* find(const fetched_session& session);
  void settle(std::uint64_t turn, const fetched_part* part);
  void show_turns_of_oldest();
  static range_store::read& read_of(std::uint64_t tag) noexcept {
    return *reinterpret_cast<range_store::read*>(detail::to_size(tag));
  }
  static void done(void* self, std::uint64_t tag, std::exception_ptr error) noexcept;

  range_store store_;
  std::vector<asked_session> sessions_;
  std::vector<piece> pieces_;
  /// A turn of the current list: how many entries remain, and whether they are left to its worker.
  struct turn_state {
    std::uint32_t left = 0;
    bool claimed = false, dropped = false;
  };
  std::vector<turn_state> turns_;
  std::uint64_t first_turn_ = 0;
  std::vector<read_request> requests_;
  const asked_session* asked_ = nullptr;  // the session that `requests_` are for
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/run/engine/fetcher.ipp>
#endif
