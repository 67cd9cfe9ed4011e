// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/fixed_array.hpp>
#include <penstock/core/error.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_view.hpp>
#include <penstock/storage/sha256_check.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <utility>

namespace penstock::inline v0_1::detail {

/// Which objects of a session were compared with the list, and who compares one now.
///
/// Threads: any number may call.
class object_checks {
 public:
  /// Refers to the names, and to the session that `use` gives it.
  object_checks(sha256_check check, std::span<const std::string> names, std::size_t maximum)
      : check_(std::move(check)), names_(names), limit_(maximum), objects_(names.size()) {
    for (std::size_t i = 0; i < names.size(); ++i) objects_[i].listed = check_.knows(names[i]);
  }

  /// Whether an object is the one of the list.
  [[nodiscard]] bool passed(object_id id) const noexcept {
    return id < names_.size() && objects_[id].passed.load(std::memory_order_acquire);
  }
  /// Throws if the list has no entry for an object.
  void must_be_listed(object_id id) const {
    if (id < names_.size() && !objects_[id].listed) [[unlikely]]
      (void)check_.begin(names_[id]);
  }
  /// Returns when an object was compared, by this thread or another one. Throws if it is not that of the
  /// list, or errc::stopped if it was not compared before `cancel`.
  void pass(session_view session, object_id id) {
    if (!passed(id)) [[unlikely]]
      compare(session, id);
  }
  /// The version of an object now; one that is no longer that of the comparison is compared again.
  [[nodiscard]] object_version version(session_view session, object_id id) {
    must_be_listed(id);
    const object_version now = session.version(id);
    if (passed(id)) {
      const std::scoped_lock held(lock_);
      if (objects_[id].version != now) objects_[id].passed.store(false, std::memory_order_release);
    }
    return now;
  }

  /// Ends the comparisons in progress, and the waits for them.
  void cancel() noexcept {
    {
      const std::scoped_lock held(lock_);
      stops_.fetch_add(1, std::memory_order_relaxed);
    }
    changed_.notify_all();
  }
  /// As `cancel`, and lets those that begin later end at once.
  void end() noexcept {
    ended_.store(true, std::memory_order_relaxed);
    cancel();
  }
  /// The bytes of memory that comparisons have now.
  [[nodiscard]] std::uint64_t held_bytes() const noexcept { return held_.load(std::memory_order_relaxed); }

 private:
  struct object {
    std::atomic<bool> passed{false};
    bool listed = false;
    bool compared_now = false;  // under the lock, as what follows
    object_version version;     // when it passed
  };
  /// The right to compare an object, which one thread has.
  class lock {
   public:
    lock(object_checks& of, object& what) noexcept : of_(of), what_(what) {
      what_.compared_now = true;
      ++of_.running_;
    }
    lock(const lock&) = delete;
    lock& operator=(const lock&) = delete;
    ~lock() {
      {
        const std::scoped_lock held(of_.lock_);
        what_.compared_now = false;
        --of_.running_;
        if (done_) {
          what_.version = found_;
          what_.passed.store(true, std::memory_order_release);
        }
      }
      of_.changed_.notify_all();
    }
    void passes(object_version as) noexcept {
      found_ = as;
      done_ = true;
    }

   private:
    object_checks& of_;
    object& what_;
    object_version found_;
    bool done_ = false;
  };

  void compare(session_view session, object_id id) {
    if (id >= names_.size()) return;  // the session says what is wrong
    must_be_listed(id);
    object& what = objects_[id];
    std::unique_lock held(lock_);
    const std::uint64_t stops = stops_.load(std::memory_order_relaxed);
    for (;;) {
      if (what.passed.load(std::memory_order_relaxed)) return;
      go_on(id, stops);
      if (!what.compared_now && running_ < limit_) break;
      changed_.wait(held);
    }
    lock mine(*this, what);
    held.unlock();
    mine.passes(compared(session, id, stops));
  }
  [[nodiscard]] object_version compared(session_view session, object_id id, std::uint64_t stops) {
    const object_version before = session.version(id);
    sha256_check::state state = check_.begin(names_[id]);
    const counted memory(held_, session.views() ? 0 : std::min(before.size, hash_chunk));
    in_pieces(
        session, id, before.size, [&](bytes_view bytes) { state.add(bytes); }, [&] { go_on(id, stops); });
    if (session.version(id) != before)
      throw error(errc::io, "the object was replaced while its SHA-256 was computed; read it again")
          .in_file(names_[id]);
    state.finish();
    return before;
  }
  void go_on(object_id id, std::uint64_t stops) const {
    if (stops_.load(std::memory_order_relaxed) == stops && !ended_.load(std::memory_order_relaxed)) return;
    throw error(errc::stopped, "the read was cancelled before its object was compared with its SHA-256")
        .in_file(names_[id]);
  }

  class counted {
   public:
    counted(std::atomic<std::uint64_t>& all, std::uint64_t bytes) noexcept : all_(all), bytes_(bytes) {
      all_.fetch_add(bytes_, std::memory_order_relaxed);
    }
    counted(const counted&) = delete;
    counted& operator=(const counted&) = delete;
    ~counted() { all_.fetch_sub(bytes_, std::memory_order_relaxed); }

   private:
    std::atomic<std::uint64_t>& all_;
    std::uint64_t bytes_;
  };

  sha256_check check_;
  std::span<const std::string> names_;
  std::size_t limit_;
  fixed_array<object> objects_;
  std::mutex lock_;
  std::condition_variable changed_;
  std::size_t running_ = 0;
  std::atomic<std::uint64_t> stops_{0}, held_{0};
  std::atomic<bool> ended_{false};
};

}  // namespace penstock::inline v0_1::detail
