// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/message.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/detail/delay_line.hpp>
#include <penstock/storage/session_view.hpp>
#include <penstock/storage/simulated_storage_options.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace penstock::inline v0_1 {

/// A storage that is far away: another storage, whose reads take a given time, come through a link of a given
/// width and fail where they are told to. So reading ahead, retries and errors can be measured and tested on
/// any machine.
///
///     const auto shards = memory_files().add("a.tar", std::string(10'240, '\0'));
///     const simulated_storage far(shards, {.latency = std::chrono::milliseconds(1), .at_once = 64});
///     auto session = far.connect();
///     const std::uint64_t size = session.size(0);
///     const bool asked_nothing_yet = far.reads() == 0;
///
/// In: any storage. The bytes are its bytes. A read of `read_many` is told when its time has come, by one
/// thread of the session that starts with the first of them; `read` takes its time in the thread that calls
/// it. The time of a read does not depend on the clock: `latency`, and `jitter` drawn by `seed`, object and
/// offset; then its wait for others, where `at_once` or `bytes_per_second` bound them.
/// Errors: those of the storage behind, and errc::io for a read that touches one of `faults`; after its
/// latency. errc::argument for options that make no sense.
/// Copies share one account, which counts the reads of all their sessions.
/// Threads: a session may be used by any number of threads. `cancel` ends what `read_many` began; a thread in
/// `read` goes on, but does not wait any longer for the reads that were ended. A child after `fork` has no
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
    detail::delay_line line;
  };

 public:
  static constexpr bool names_are_paths = local_storage<Storage>;

  /// What a run reads through; see `background_session` and `latent_session`.
  class session {
   public:
    static constexpr bool views = false;
    static constexpr bool has_latency = true;

    [[nodiscard]] std::uint64_t size(object_id id) const { return state_->line.size(id); }
    [[nodiscard]] object_signature signature(object_id id) const { return state_->line.signature(id); }
    void read(object_id id, std::uint64_t offset, mutable_bytes into) const {
      state_->line.read(id, offset, into);
    }
    void read_many(std::span<const read_request> requests, read_listener listener) const noexcept {
      state_->line.read_many(requests, listener);
    }
    void cancel() const noexcept { state_->line.cancel(); }
    void will_need(object_id, std::uint64_t, std::uint64_t) const noexcept {}

   private:
    friend simulated_storage;
    explicit session(std::unique_ptr<state> made) : state_(std::move(made)) {}

    std::unique_ptr<state> state_;
  };

  explicit simulated_storage(Storage where, simulated_storage_options options = {})
      : where_(std::move(where)), options_(std::move(options)) {
    detail::delay_line::check(options_);
    account_.reset(new detail::delay_account(options_.faults));
  }

  [[nodiscard]] std::span<const std::string> names() const { return where_.names(); }
  [[nodiscard]] session connect() const {
    return session(std::make_unique<state>(where_, options_, account_));
  }
  [[nodiscard]] std::string describe() const {
    std::string behind;
    if constexpr (requires { where_.describe(); }) behind = where_.describe() + ", ";
    return detail::text({"simulated_storage(", behind, options_.latency.count(), " us a read)"});
  }

  /// How many reads were done, also in vain, and how many bytes came. Reads that were cancelled do not count.
  [[nodiscard]] std::uint64_t reads() const noexcept { return account_->reads.load(); }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return account_->bytes.load(); }
  /// How many reads have begun and not ended, and how many had at most.
  [[nodiscard]] std::uint64_t in_flight() const noexcept { return account_->in_flight.load(); }
  [[nodiscard]] std::uint64_t most_in_flight() const noexcept { return account_->most_in_flight.load(); }

 private:
  Storage where_;
  simulated_storage_options options_;
  shared<detail::delay_account> account_;
};

}  // namespace penstock::inline v0_1
