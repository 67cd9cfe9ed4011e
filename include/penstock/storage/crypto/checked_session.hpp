// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/crypto/object_checks.hpp>
#include <penstock/storage/session_adaptor.hpp>
#include <penstock/storage/session_report.hpp>
#include <penstock/storage/session_view.hpp>
#include <penstock/storage/sha256_check.hpp>
#include <penstock/storage/threaded_reads.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace penstock::inline v0_1::detail {

/// The session of `checked`.
template <storage Far>
class checked_session : public session_adaptor<checked_session<Far>, typename Far::session> {
  using inner = typename Far::session;
  static constexpr bool in_background = background_session<inner>;
  static constexpr std::size_t max_threads = 64;

  struct state {
    state(const Far& given, const sha256_check& check, std::size_t max_checks_in_flight)
        : where(given), session(where.connect()), checks(check, where.names(), max_checks_in_flight) {
      if constexpr (in_background) threads.emplace(session_view(blocking), where.names(), max_threads);
    }
    state(const state&) = delete;
    state& operator=(const state&) = delete;
    ~state() { end(); }

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

    /// What `threads` read from.
    struct blocking_reader {
      state& of;
      [[nodiscard]] std::uint64_t size(object_id id) const { return of.session.size(id); }
      [[nodiscard]] object_version version(object_id id) const { return of.session.version(id); }
      void read(object_id id, std::uint64_t offset, mutable_bytes into) const { of.read(id, offset, into); }
    };

    Far where;  // whose names the others refer to
    inner session;
    object_checks checks;
    blocking_reader blocking{*this};
    std::optional<threaded_reads> threads;  // end first
  };

 public:
  checked_session(const Far& where, const sha256_check& check, std::size_t max_checks_in_flight)
      : state_(std::make_unique<state>(where, check, max_checks_in_flight)) {}

  /// Reads nothing.
  [[nodiscard]] std::uint64_t size(object_id id) const {
    state_->checks.must_be_listed(id);
    return state_->session.size(id);
  }
  /// Reads nothing. If it is not that of the object that was compared, the next read compares again.
  [[nodiscard]] object_version version(object_id id) const {
    return state_->checks.version(state_->session, id);
  }
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
  /// What was compared is read through it.
  [[nodiscard]] inner& inside() const noexcept { return state_->session; }

 private:
  std::unique_ptr<state> state_;
};

}  // namespace penstock::inline v0_1::detail
