// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/fixed_array.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_adaptor.hpp>
#include <penstock/storage/session_report.hpp>
#include <penstock/storage/session_view.hpp>
#include <penstock/storage/sha256_check.hpp>
#include <penstock/storage/threaded_reads.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace penstock::inline v0_1::detail {

/// Which objects of a session were compared with the list, and who compares one now.
///
/// Threads: any number may call.
class object_checks {
 public:
  /// Refers to the names.
  object_checks(sha256_check check, std::span<const std::string> names, std::size_t maximum)
      : check_(std::move(check)), names_(names), limit_(maximum), objects_(names.size()) {
    for (std::size_t i = 0; i < names.size(); ++i) objects_[i].listed = check_.knows(names[i]);
  }

  /// Whether an object is the one of the list.
  [[nodiscard]] bool passed(object_id id) const noexcept {
    return id < names_.size() && objects_[id].passed.load(std::memory_order_acquire);
  }
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
  [[nodiscard]] std::uint64_t held_bytes() const noexcept { return held_.load(std::memory_order_relaxed); }

 private:
  struct object {
    std::atomic<bool> passed{false};
    bool listed = false;
    bool compared_now = false;  // under the lock, as what follows
    object_version version;     // when it passed
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
    what.compared_now = true;
    ++running_;
    held.unlock();
    object_version found;
    const std::exception_ptr failed = thrown_by([&] { found = compared(session, id, stops); });
    held.lock();
    what.compared_now = false;
    --running_;
    if (!failed) {
      what.version = found;
      what.passed.store(true, std::memory_order_release);
    }
    held.unlock();
    changed_.notify_all();
    if (failed) std::rethrow_exception(failed);
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

  struct counted {
    std::atomic<std::uint64_t>& all;
    std::uint64_t bytes;
    counted(std::atomic<std::uint64_t>& total, std::uint64_t some) noexcept : all(total), bytes(some) {
      all += some;
    }
    ~counted() { all -= bytes; }
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

template <storage Far>
class checked_session : public session_adaptor<checked_session<Far>, typename Far::session> {
  using inner = typename Far::session;
  static constexpr bool in_background = background_session<inner>;
  static constexpr std::size_t max_threads = 64;

  struct state {
    state(const Far& given, const sha256_check& check, std::size_t max_checks_in_flight)
        : where(given), session(where.connect()), checks(check, where.names(), max_checks_in_flight) {
      if constexpr (in_background) threads.emplace(session_view(*this), where.names(), max_threads);
    }
    ~state() { end(); }

    std::uint64_t size(object_id id) {
      checks.must_be_listed(id);
      return session.size(id);
    }
    object_version version(object_id id) { return checks.version(session, id); }
    void read(object_id id, std::uint64_t offset, mutable_bytes into) {
      checks.pass(session, id);
      session.read(id, offset, into);
    }
    void cancel() noexcept {
      if (threads) threads->cancel();
      checks.cancel();
    }
    void end() noexcept {
      if (threads) threads->cancel();
      checks.end();
      penstock::end_reads(session);
    }

    Far where;  // whose names the others refer to
    inner session;
    object_checks checks;
    std::optional<threaded_reads> threads;  // end first
  };

 public:
  checked_session(const Far& where, const sha256_check& check, std::size_t max_checks_in_flight)
      : state_(std::make_unique<state>(where, check, max_checks_in_flight)) {}

  /// Reads nothing.
  [[nodiscard]] std::uint64_t size(object_id id) const { return state_->size(id); }
  /// Reads nothing. If it is not that of the object that was compared, the next read compares again.
  [[nodiscard]] object_version version(object_id id) const { return state_->version(id); }
  void read(object_id id, std::uint64_t offset, mutable_bytes into) const { state_->read(id, offset, into); }
  /// What was compared is read by the session inside; threads compare the rest, and read it then.
  void read_many(std::span<const read_request> requests, read_listener listener) const noexcept
    requires in_background
  {
    while (!requests.empty()) {
      const bool passed = state_->checks.passed(requests[0].object);
      std::size_t alike = 1;
      while (alike < requests.size() && state_->checks.passed(requests[alike].object) == passed) ++alike;
      if (passed)
        state_->session.read_many(requests.first(alike), listener);
      else
        state_->threads->read_many(requests.first(alike), listener);
      requests = requests.subspan(alike);
    }
  }
  // A read that waits for a comparison is not the session's inside.
  void abandon(std::uint64_t) const = delete;
  /// Ends comparisons and the waits for them, too.
  void cancel() const noexcept {
    state_->cancel();
    cancel_reads(state_->session);
  }
  void end_reads() const noexcept { state_->end(); }

  [[nodiscard]] bytes_view view(object_id id, std::uint64_t offset, std::uint64_t size) const {
    state_->checks.pass(state_->session, id);
    return session_adaptor<checked_session<Far>, inner>::view(id, offset, size);
  }

  /// That of the session inside, such as for a comparison, and the memory of comparisons.
  [[nodiscard]] session_report report() const {
    session_report all = report_of(state_->session);
    all.counters.held += state_->checks.held_bytes();
    all.names = state_->where.names();
    return all;
  }
  [[nodiscard]] session_report limits() const { return limits_of(state_->session); }
  [[nodiscard]] inner& inside() const noexcept { return state_->session; }

 private:
  std::unique_ptr<state> state_;
};

}  // namespace penstock::inline v0_1::detail
