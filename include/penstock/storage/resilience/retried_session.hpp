// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/detail/storage_around.hpp>
#include <penstock/storage/resilience/retry_policy.hpp>
#include <penstock/storage/resilience/retry_queue.hpp>
#include <penstock/storage/session_adaptor.hpp>
#include <penstock/storage/session_report.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <utility>

namespace penstock::inline v0_1::detail {

/// The session of a storage whose reads go through a `retry_queue`; everything else goes to the session
/// inside.
template <storage Storage>
class retried_session : public session_adaptor<retried_session<Storage>, typename Storage::session> {
  using inner = typename Storage::session;
  struct stop_line {
    retry_queue* line;
    void operator()() const noexcept { line->end_waits(); }
  };
  struct state {
    state(const Storage& given, const retry_policy& policy)
        : where(given), line(policy, where.names()), session(where.connect()) {
      line.use(session);
      if (policy.stop.stop_possible()) stops.emplace(policy.stop, stop_line{&line});
    }
    ~state() {
      stops.reset();
      line.stop();
    }

    Storage where;
    retry_queue line;
    inner session;  // ends first: it reports its reads to the line
    std::optional<std::stop_callback<stop_line>> stops;
  };

 public:
  retried_session(const Storage& where, const retry_policy& policy)
      : state_(std::make_unique<state>(where, policy)) {}

  [[nodiscard]] std::uint64_t size(object_id id) const { return state_->line.size(id); }
  [[nodiscard]] object_version version(object_id id) const { return state_->line.version(id); }
  void read(object_id id, std::uint64_t offset, mutable_bytes into) const {
    state_->line.read(id, offset, into);
  }
  void read_many(std::span<const read_request> requests, read_listener listener) const noexcept
    requires background_session<inner>
  {
    state_->line.read_many(requests, listener);
  }
  /// Ends waits for room and for another attempt, too.
  void cancel() const noexcept { state_->line.cancel(); }
  // The line gives its reads tags of its own.
  void abandon(std::uint64_t) const = delete;
  /// As `cancel`; and from now on no read waits for room or for another attempt.
  void end_reads() const noexcept {
    state_->line.end_waits();
    penstock::end_reads(state_->session);
  }

  /// The attempts of the oldest read are those of the storage that tries again, wherever it is.
  [[nodiscard]] session_report report() const {
    const session_report within = report_of(state_->session);
    session_report all = state_->line.report();
    all.add_inside(within);
    return all;
  }
  [[nodiscard]] session_report limits() const {
    session_report all = state_->line.limits();
    all.add_inside(limits_of(state_->session));
    return all;
  }
  /// Connections opened so far.
  [[nodiscard]] std::uint64_t connections() const noexcept
    requires requires(const inner& s) { s.connections(); }
  {
    return state_->session.connections();
  }
  /// The session that reads go to.
  [[nodiscard]] inner& inside() const noexcept { return state_->session; }

 private:
  std::unique_ptr<state> state_;
};

/// A storage around another one, whose sessions do what a policy says: `retrying`, `throttled` and `hedged`.
template <class Derived, storage Storage>
class retried_storage : public storage_around<Derived, Storage> {
 public:
  using session = retried_session<Storage>;

  [[nodiscard]] session connect() const { return session(this->inner(), policy_); }

 protected:
  retried_storage(Storage where, const retry_policy& policy)
      : storage_around<Derived, Storage>(std::move(where)), policy_(policy) {}

  [[nodiscard]] const retry_policy& policy() const noexcept { return policy_; }

 private:
  retry_policy policy_;
};

}  // namespace penstock::inline v0_1::detail
