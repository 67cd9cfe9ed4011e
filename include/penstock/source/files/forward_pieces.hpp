// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/owned.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_view.hpp>

#include <array>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace penstock::inline v0_1 {
namespace detail {

/// Asks for the sizes of objects before their turn, one after another, in a thread of its own, so that
/// whoever reads them one after another waits for no answer.
///
/// Threads: one calls `ask_from`, `answer` and `forget`; any may call `stop`.
class size_requests : unmovable {
 public:
  enum class state : std::uint8_t { open, known, failed };
  struct answer_type {
    state is = state::open;
    std::uint64_t size = 0;
  };

  size_requests(session_view session, std::size_t objects) noexcept;
  /// Waits for the question in progress; `stop`, and then end the session's reads, to make that short.
  ~size_requests();

  /// Asks for this object and some of those after it. What is known already is not asked for again.
  void ask_from(std::size_t object);
  /// The answer for an object that was asked for, as far as it has come.
  [[nodiscard]] answer_type answer(std::size_t object) {
    const std::lock_guard guard(lock_);
    const place& there = places_[object % ahead];
    return there.object == object ? there.answer : answer_type{};
  }
  /// Forgets all answers, that of the question in progress included.
  void forget() noexcept;
  /// Asks no more.
  void stop() noexcept;

 private:
  static constexpr std::size_t ahead = 4;
  struct place {
    std::optional<std::size_t> object;
    answer_type answer;
  };

  void work() noexcept;

  session_view session_;
  std::size_t objects_;
  std::mutex lock_;
  std::condition_variable changed_;
  std::array<place, ahead> places_;
  std::size_t from_ = 0, next_ = 0, end_ = 0;
  std::uint64_t times_forgotten_ = 0;
  bool stopped_ = false;
  std::thread thread_;
};

/// The bytes of objects, each from its beginning to its end, in pieces. If the session reads in the
/// background, the pieces after the one that is being used are read ahead, also those of the next object; a
/// piece that fails is an error when its turn comes. If the session has latency, sizes of objects are asked
/// for ahead, too. Memory: `ahead` bytes, or one piece if nothing is read
/// ahead. No allocation in the steady state.
///
/// Threads: one reads; `end` and nothing else may be called by others meanwhile.
class forward_pieces : unmovable {
 public:
  static constexpr std::size_t piece = 1_MiB;

  /// Of `objects` objects; the session must outlive this.
  forward_pieces(session_view session, std::size_t objects, std::uint64_t ahead)
      : session_(session),
        objects_(objects),
        slots_(session.in_background() ? std::max<std::size_t>(2, to_size(ahead / piece)) : 1) {
    requests_.reserve(slots_.size());
    if (session.in_background() && session.traits().latency) sizes_.emplace(session, objects);
  }
  /// Ends the reads in progress, and waits until they have been reported.
  ~forward_pieces() {
    end();
    wait_for_all();
  }

  /// Goes to the beginning of an object. What was read ahead of it is kept.
  void open(std::size_t object);
  /// The next bytes of the object, until the next call of any member; none at its end. Throws what reading
  /// them threw.
  [[nodiscard]] bytes_view next() {
    if (used_) drop_first();
    if (left_ == 0 && !session_.in_background()) return {};
    read_ahead();
    if (left_ == 0) return {};
    slot& one = at(0);
    if (session_.in_background())
      wait_for(one);
    else
      session_.read(static_cast<object_id>(one.object), one.offset, one.bytes.span());
    if (one.failed) std::rethrow_exception(one.failed);
    left_ -= one.bytes.size();
    used_ = true;
    return one.bytes.view();
  }
  /// Ends all reads, now and later: `next` throws errc::stopped. Any thread.
  void end() noexcept;

 private:
  struct slot {
    buffer bytes;
    std::size_t object = 0;
    std::uint64_t offset = 0;
    bool in_flight = false;
    std::exception_ptr failed;
  };
  [[nodiscard]] slot& at(std::size_t i) noexcept { return slots_[(first_ + i) % slots_.size()]; }
  /// Waits until a piece is there, or the end: then throws.
  void wait_for(const slot& one) {
    std::unique_lock held(mutex_);
    changed_.wait(held, [&] { return !one.in_flight || ended_; });
    if (ended_) throw error(errc::stopped, "the run was stopped");
  }
  void wait_for_all();
  void drop_first();
  /// Forgets what was read ahead, and begins anew at an object.
  void restart(std::size_t object);
  void read_ahead();
  /// Moves on to the next object that has bytes; false if there is none, or its size is not to be had yet.
  bool next_object();
  /// The size of an object after the one that is read; nothing if that is not to be had, or not yet.
  [[nodiscard]] std::optional<std::uint64_t> size_ahead(std::size_t object);
  static void done(void* self, std::uint64_t tag, std::exception_ptr failed) noexcept;

  session_view session_;
  std::size_t objects_;
  std::vector<slot> slots_;  // a ring: `count_` pieces from `first_` on were requested
  std::size_t first_ = 0, count_ = 0;
  bool used_ = false;  // whether the caller has the first one
  bool open_ = false;
  std::size_t object_ = 0;  // that is open
  std::uint64_t left_ = 0;  // of its bytes
  // the piece that is requested next
  std::size_t next_object_ = 0;
  std::uint64_t next_offset_ = 0, next_size_ = 0;
  bool stuck_ = false;  // the size of the object after that was not to be had
  std::optional<size_requests> sizes_;
  std::vector<read_request> requests_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
};

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/files/forward_pieces.ipp>
#endif
