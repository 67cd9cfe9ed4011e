// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/message.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/detail/storage_around.hpp>
#include <penstock/storage/resilience/latency_model.hpp>
#include <penstock/storage/session_adaptor.hpp>
#include <penstock/storage/session_view.hpp>
#include <penstock/storage/simulated_storage_options.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

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
/// Copies share one account, which counts the reads of all their sessions, as do sidecars and objects with
/// other names; none of those is in `faults`.
/// Threads: any number of threads may use a session. `cancel` ends the reads that `read_many` began; a thread
/// in `read` continues, but no longer waits for the reads that were ended. A child after `fork` has no
/// session.
template <storage Storage>
class simulated_storage : public detail::storage_around<simulated_storage<Storage>, Storage> {
  using base = detail::storage_around<simulated_storage<Storage>, Storage>;
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
  /// What a run reads through; see `background_session`. Its report has its reads, the bytes received, and
  /// the answers that asked for fewer.
  class session : public session_adaptor<session, detail::latency_model> {
   public:
    [[nodiscard]] detail::latency_model& inside() const noexcept { return state_->line; }

   private:
    friend simulated_storage;
    explicit session(std::unique_ptr<state> made) : state_(std::move(made)) {}

    std::unique_ptr<state> state_;
  };

  explicit simulated_storage(Storage where, simulated_storage_options options = {})
      : base(std::move(where)), options_(std::move(options)) {
    detail::latency_model::check(options_);
    account_.reset(new detail::delay_account(options_.faults));
  }

  [[nodiscard]] session connect() const {
    return session(std::make_unique<state>(this->inner(), options_, account_));
  }
  [[nodiscard]] std::string describe() const {
    return this->describe_as("simulated_storage", detail::text({options_.latency.count(), " us a read"}));
  }

  /// Reads performed, including failed ones, and bytes received. Cancelled reads do not count.
  [[nodiscard]] std::uint64_t reads() const noexcept { return account_->reads.load(); }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return account_->bytes.load(); }
  /// Reads begun and not ended, and the maximum there has been.
  [[nodiscard]] std::uint64_t in_flight() const noexcept { return account_->in_flight.load(); }
  [[nodiscard]] std::uint64_t peak_in_flight() const noexcept { return account_->peak_in_flight.load(); }

 private:
  friend base;
  void change_objects() noexcept { options_.faults.clear(); }

  simulated_storage_options options_;
  shared<detail::delay_account> account_;
};

}  // namespace penstock::inline v0_1
