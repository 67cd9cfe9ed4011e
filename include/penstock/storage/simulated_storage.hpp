// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/message.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/resilience/latency_model.hpp>
#include <penstock/storage/session_report.hpp>
#include <penstock/storage/session_view.hpp>
#include <penstock/storage/sidecar.hpp>
#include <penstock/storage/simulated_storage_options.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// Simulates a distant storage: another storage whose reads take a given time, share a link of a given
/// bandwidth, and fail where you tell them to. So you can measure and test reading ahead, retries and errors
/// on any machine.
///
///     const auto shards = memory_files().add("a.tar", std::string(10'240, '\0'));
///     const simulated_storage far(shards, {.latency = std::chrono::milliseconds(1), .max_in_flight = 64});
///     auto session = far.connect();
///     const std::uint64_t size = session.size(0);
///     const bool asked_nothing_yet = far.reads() == 0;
///
/// In: any storage. The bytes are its bytes. One thread of the session, started by the first `read_many`,
/// reports each of its reads when its time has come; `read` takes its time in the calling thread. The time of
/// a read does not depend on the clock: it is `latency`, plus `jitter` drawn from `seed`, object and offset,
/// plus the wait for other reads if `max_in_flight` or `bytes_per_second` bound them.
/// A read may also stall, fail the first times, or be refused because too many are in flight: see
/// `simulated_storage_options`.
/// Errors: those of the underlying storage, and errc::io, after its latency, for a read that touches one of
/// `faults` or fails otherwise. errc::argument for options that make no sense.
/// Copies share one account, which counts the reads of all their sessions.
/// Threads: any number of threads may use a session. `cancel` ends the reads that `read_many` began; a thread
/// in `read` continues, but no longer waits for the reads that were ended. A child after `fork` has no
/// session.
template <storage Storage>
class simulated_storage {
  struct state {
    state(const Storage& given, const simulated_storage_options& chosen,
          shared<detail::delay_account> account)
        : where(given),
          options(chosen),
          session(where.connect()),
          line(session_view(session), where.names(), options, std::move(account)) {}

    Storage where;
    simulated_storage_options options;
    typename Storage::session session;
    detail::latency_model line;
  };

 public:
  static constexpr bool names_are_paths = is_local<Storage>();

  /// What a run reads through; see `background_session`.
  class session {
   public:
    static constexpr session_traits traits = {.latency = true};

    [[nodiscard]] std::uint64_t size(object_id id) const { return state_->line.size(id); }
    [[nodiscard]] object_version version(object_id id) const { return state_->line.version(id); }
    void read(object_id id, std::uint64_t offset, mutable_bytes into) const {
      state_->line.read(id, offset, into);
    }
    [[nodiscard]] bool tagged(object_id id) const { return penstock::is_tagged(state_->session, id); }
    void read_many(std::span<const read_request> requests, read_listener listener) const noexcept {
      state_->line.read_many(requests, listener);
    }
    void cancel() const noexcept { state_->line.cancel(); }
    void abandon(std::uint64_t tag) const noexcept { state_->line.abandon(tag); }
    /// The session's reads, the bytes received, and the answers that asked for fewer.
    [[nodiscard]] session_report report() const noexcept {
      return {.counters = state_->line.counters(), .counted = true, .names = state_->where.names()};
    }

   private:
    friend simulated_storage;
    explicit session(std::unique_ptr<state> made) : state_(std::move(made)) {}

    std::unique_ptr<state> state_;
  };

  explicit simulated_storage(Storage where, simulated_storage_options options = {})
      : inner_(std::move(where)), options_(std::move(options)) {
    detail::latency_model::check(options_);
    account_.reset(new detail::delay_account(options_.faults));
  }

  [[nodiscard]] std::span<const std::string> names() const { return inner_.names(); }
  [[nodiscard]] session connect() const {
    return session(std::make_unique<state>(inner_, options_, account_));
  }
  /// See `has_sidecars`. The sidecars share the account, and none of them is in `faults`.
  [[nodiscard]] simulated_storage sidecars(sidecar which) const
    requires(has_sidecars<Storage>())
  {
    return simulated_storage(*this, inner_.sidecars(which));
  }
  /// See `renaming_storage`. They share the account, and none of them is in `faults`.
  [[nodiscard]] simulated_storage with_names(std::vector<std::string> names) const
    requires renaming_storage<Storage>
  {
    return simulated_storage(*this, inner_.with_names(std::move(names)));
  }
  /// Whether the names are paths; see `is_local`.
  [[nodiscard]] bool local() const { return is_local(inner_); }
  [[nodiscard]] std::string describe() const {
    std::string behind;
    if constexpr (requires { inner_.describe(); }) behind = inner_.describe() + ", ";
    return detail::text({"simulated_storage(", behind, options_.latency.count(), " us a read)"});
  }

  /// Reads performed, including failed ones, and bytes received. Cancelled reads do not count.
  [[nodiscard]] std::uint64_t reads() const noexcept { return account_->reads.load(); }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return account_->bytes.load(); }
  /// Reads begun and not ended, and the maximum there has been.
  [[nodiscard]] std::uint64_t in_flight() const noexcept { return account_->in_flight.load(); }
  [[nodiscard]] std::uint64_t peak_in_flight() const noexcept { return account_->peak_in_flight.load(); }

 private:
  simulated_storage(const simulated_storage& like, Storage where)
      : inner_(std::move(where)), options_(like.options_), account_(like.account_) {
    options_.faults.clear();
  }

  Storage inner_;
  simulated_storage_options options_;
  shared<detail::delay_account> account_;
};

}  // namespace penstock::inline v0_1
