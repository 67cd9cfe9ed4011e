// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/http_options.hpp>
#include <penstock/storage/reads/background_view.hpp>
#include <penstock/storage/resilience/hedged_reads.hpp>
#include <penstock/storage/resilience/retried_session.hpp>
#include <penstock/storage/resilience/retry_queue.hpp>
#include <penstock/storage/session_adaptor.hpp>
#include <penstock/storage/session_report.hpp>
#include <penstock/storage/session_view.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <variant>

namespace penstock::inline v0_1 {
namespace detail {

/// What a storage over a network does about reads that fail, or are late: one queue tries again and limits,
/// as `retrying` around `throttled`, and goes around second reads, as `hedged`.
struct retry_policy {
  retry_rules retries;                // `stop` ends all waits of the session
  std::optional<hedge_rules> hedges;  // none: no second reads
};
/// Throws errc::argument for options that make no sense. `attempts` of 1, `max_in_flight` of 0 and a
/// `max_extra_requests` of 0 switch them off. No more reads than `connections` are let through in any case:
/// more would wait inside, where they would look late.
[[nodiscard]] retry_policy retry_policy_of(const http_options& options);
/// How requests that are no reads are tried again.
[[nodiscard]] retry_rules retry_rules_of(const http_options& options);

/// The session of a storage over a network, whose reads are tried again, limited and hedged: what
/// `retrying(throttled(hedged(inner)))` would be, with each part chosen when the storage is made.
///
/// Cost and threads: as for those.
template <storage Inner>
class resilient_session : public session_adaptor<resilient_session<Inner>, typename Inner::session> {
  using inner = typename Inner::session;
  using hedging = retried_session<Inner, hedged_reads>;
  static_assert(abandoning_session<inner>, "second reads would copy all bytes once more");

  struct state {
    state(const Inner& given, const retry_policy& rules) : where(given), line(rules.retries, where.names()) {
      if (rules.hedges)
        use(session.template emplace<hedging>(where, *rules.hedges));
      else
        use(session.template emplace<opened>(where).session);
      if (rules.retries.stop.stop_possible()) stops.emplace(rules.retries.stop, stop_line{&line});
    }
    state(const state&) = delete;
    state& operator=(const state&) = delete;
    ~state() {
      stops.reset();
      line.stop();
    }

    template <class Session>
    void use(Session& made) {
      line.use(session_view(made), background_view(made));
    }

    struct stop_line {
      retry_queue* line;
      void operator()() const noexcept {
        line->end_waits();
        line->cancel();
      }
    };
    struct opened {
      explicit opened(const Inner& storage) : session(storage.connect()) {}  // need not be movable
      inner session;
    };
    Inner where;
    retry_queue line;
    std::variant<std::monostate, opened, hedging>
        session;  // ends before the line: it reports its reads to it
    std::optional<std::stop_callback<stop_line>> stops;
  };

 public:
  resilient_session(const Inner& where, const retry_policy& rules)
      : state_(std::make_unique<state>(where, rules)) {}

  [[nodiscard]] std::uint64_t size(object_id id) const { return state_->line.size(id); }
  [[nodiscard]] object_version version(object_id id) const { return state_->line.version(id); }
  void read(object_id id, std::uint64_t offset, mutable_bytes into) const {
    state_->line.read(id, offset, into);
  }
  void read_many(std::span<const read_request> requests, read_listener listener) const noexcept {
    state_->line.read_many(requests, listener);
  }
  // The line gives its reads tags of its own.
  void abandon(std::uint64_t) const = delete;
  /// Ends all reads, and the waits of those that would be tried again.
  void cancel() const noexcept { state_->line.cancel(); }
  /// As `cancel`, and lets reads that begin later end at once with errc::stopped.
  void end_reads() const noexcept {
    state_->line.end_waits();
    state_->line.cancel();
    with([](auto& session) { penstock::end_reads(session); });
  }
  [[nodiscard]] session_report report() const {
    session_report all = state_->line.report();
    with([&](const auto& session) { all.add_inside(report_of(session)); });
    return all;
  }

  /// The session that reads go to at last.
  [[nodiscard]] inner& inside() const noexcept {
    if (auto* const hedges = std::get_if<hedging>(&state_->session)) return hedges->inside();
    return std::get_if<typename state::opened>(&state_->session)->session;
  }

 private:
  template <class F>
  void with(F&& f) const {
    if (auto* const hedges = std::get_if<hedging>(&state_->session)) return f(*hedges);
    f(std::get_if<typename state::opened>(&state_->session)->session);
  }

  std::unique_ptr<state> state_;
};

inline retry_rules retry_rules_of(const http_options& options) {
  retry_rules made = rules_of(options.retries);
  made.stop = options.stop;
  return made;
}
inline retry_policy retry_policy_of(const http_options& options) {
  retry_policy made{retry_rules_of(options), std::nullopt};
  if (options.throttle.max_in_flight != 0) {
    const retry_rules limit = rules_of(options.throttle);
    made.retries.max_in_flight = std::min(limit.max_in_flight, options.connections);
    made.retries.max_pause = limit.max_pause;
  }
  const hedge_rules second = rules_of(options.hedges);
  if (second.max_extra_requests > 0) made.hedges = second;
  return made;
}

}  // namespace detail
}  // namespace penstock::inline v0_1
