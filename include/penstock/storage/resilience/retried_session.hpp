// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/message.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/reads/background_view.hpp>
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
#include <string>
#include <string_view>
#include <utility>

namespace penstock::inline v0_1 {
namespace detail {

/// The session of a storage whose reads go through a `Line`, such as a retry_queue; everything else goes to
/// the session inside.
template <storage Storage, class Line = retry_queue>
class retried_session : public session_adaptor<retried_session<Storage, Line>, typename Storage::session> {
  using inner = typename Storage::session;
  struct state {
    state(const Storage& given, const typename Line::rules_type& rules)
        : where(given), line(rules, where.names()), session(where.connect()) {
      line.use(session_view(session), background_view(session));
    }
    state(const state&) = delete;
    state& operator=(const state&) = delete;
    ~state() { line.stop(); }

    Storage where;
    Line line;
    inner session;  // ends first: it reports its reads to the line
  };

 public:
  retried_session(const Storage& where, const typename Line::rules_type& rules)
      : state_(std::make_unique<state>(where, rules)) {}

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
  void cancel() const noexcept
    requires background_session<inner>
  {
    state_->line.cancel();
  }
  // The line gives its reads tags of its own.
  void abandon(std::uint64_t) const = delete;
  /// Ends the waits for room and for another attempt, of reads that block, with errc::stopped.
  void cancel_waits() const noexcept
    requires(!background_session<inner>)
  {
    state_->line.cancel();
    if constexpr (requires(inner& s) { s.cancel_waits(); }) state_->session.cancel_waits();
  }
  /// As `cancel`; and from now on no read waits for room or for another attempt.
  void end_reads() const noexcept {
    if constexpr (requires(Line& line) { line.end_waits(); }) state_->line.end_waits();
    state_->line.cancel();
    penstock::end_reads(state_->session);
  }

  /// Of two limits the smaller one. The oldest of its own reads, or the one inside; its attempts are those of
  /// the storage that tries again, wherever it is.
  [[nodiscard]] session_report report() const {
    const session_report within = report_of(state_->session);
    session_report all = state_->line.report();
    all.add_inside(within);
    all.limit(within.max_in_flight);
    if (!all.oldest)
      all.oldest = within.oldest;
    else if (within.oldest && within.oldest->object == all.oldest->object &&
             within.oldest->offset == all.oldest->offset)
      all.oldest->attempt = std::max(all.oldest->attempt, within.oldest->attempt);
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

}  // namespace detail
}  // namespace penstock::inline v0_1
