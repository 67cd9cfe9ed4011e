// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/message.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/resilience/retry_policy.hpp>
#include <penstock/storage/resilience/retry_queue.hpp>
#include <penstock/storage/session_adaptor.hpp>
#include <penstock/storage/session_report.hpp>
#include <penstock/storage/session_view.hpp>
#include <penstock/storage/sidecar.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {
namespace detail {

/// The session of a storage whose reads go through a `retry_queue`; everything else goes to the session
/// inside.
template <storage Storage>
class retried_session : public session_adaptor<retried_session<Storage>, typename Storage::session> {
  using inner = typename Storage::session;
  struct stop_line {
    retry_queue* line;
    void operator()() const noexcept {
      line->end_waits();
      line->cancel();
    }
  };
  struct state {
    state(const Storage& given, const retry_policy& policy)
        : where(given), line(policy, where.names()), session(where.connect()) {
      line.use(session);
      if (policy.stop.stop_possible()) stops.emplace(policy.stop, stop_line{&line});
    }
    state(const state&) = delete;
    state& operator=(const state&) = delete;
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
    state_->line.cancel();
    penstock::end_reads(state_->session);
  }

  /// Of two limits the smaller one. The attempts of the oldest read are those of the storage that tries
  /// again, wherever it is.
  [[nodiscard]] session_report report() const {
    const session_report within = report_of(state_->session);
    session_report all = state_->line.report();
    all.add_inside(within);
    all.limit(within.max_in_flight);
    all.oldest = older_of(all.oldest, within.oldest);
    return all;
  }
  /// See `limits_of`.
  [[nodiscard]] session_report limits() const {
    const session_report within = limits_of(state_->session);
    session_report all = state_->line.limits();
    all.add_inside(within);
    all.limit(within.max_in_flight);
    return all;
  }
  /// The session that reads go to.
  [[nodiscard]] inner& inside() const noexcept { return state_->session; }

 private:
  std::unique_ptr<state> state_;
};

/// "retrying(file(a.tar), 5 attempts)".
template <storage Storage>
[[nodiscard]] std::string describe_around(std::string_view name, const Storage& where, std::string_view how) {
  std::string inside = "a storage";
  if constexpr (requires { where.describe(); }) inside = where.describe();
  return text({name, "(", inside, ", ", how, ")"});
}

/// A storage around another one, whose sessions do what a policy says: `retrying`, `throttled` and `hedged`.
template <class Derived, storage Storage>
class retried_storage {
 public:
  static constexpr bool names_are_paths = is_local<Storage>();
  using session = retried_session<Storage>;

  [[nodiscard]] std::span<const std::string> names() const { return inner_.names(); }
  /// Whether the names are paths in the local file system.
  [[nodiscard]] bool local() const { return is_local(inner_); }
  [[nodiscard]] session connect() const { return session(inner_, policy_); }
  /// See `has_sidecars`.
  [[nodiscard]] Derived sidecars(sidecar which) const
    requires(has_sidecars<Storage>())
  {
    return Derived(static_cast<const Derived&>(*this), inner_.sidecars(which));
  }
  /// See `renaming_storage`.
  [[nodiscard]] Derived with_names(std::vector<std::string> names) const
    requires renaming_storage<Storage>
  {
    return Derived(static_cast<const Derived&>(*this), inner_.with_names(std::move(names)));
  }

 protected:
  retried_storage(Storage where, const retry_policy& policy) : inner_(std::move(where)), policy_(policy) {}
  retried_storage(const retried_storage& like, Storage where)
      : inner_(std::move(where)), policy_(like.policy_) {}

  [[nodiscard]] std::string describe_as(std::string_view name, std::string_view how) const {
    return describe_around(name, inner_, how);
  }
  [[nodiscard]] const retry_policy& policy() const noexcept { return policy_; }

 private:
  Storage inner_;
  retry_policy policy_;
};

}  // namespace detail
}  // namespace penstock::inline v0_1
