// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/message.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/reads/background_view.hpp>
#include <penstock/storage/resilience/retry_queue.hpp>
#include <penstock/storage/session_view.hpp>
#include <penstock/storage/storage_counters.hpp>

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
class retried_session {
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
  static constexpr bool views = inner::views;
  static constexpr bool has_latency = latent_session<inner>;

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

  void will_need(object_id id, std::uint64_t offset, std::uint64_t size) const {
    state_->session.will_need(id, offset, size);
  }
  [[gnu::always_inline]] void prefetch(object_id id, std::uint64_t offset, std::uint64_t size) const noexcept
    requires prefetching_session<inner>
  {
    state_->session.prefetch(id, offset, size);
  }
  [[nodiscard]] bytes_view view(object_id id, std::uint64_t offset, std::uint64_t size) const
    requires viewing_session<inner> || mapped_session<inner>
  {
    return state_->session.view(id, offset, size);
  }
  [[nodiscard]] bool mapped(object_id id) const
    requires mapped_session<inner>
  {
    return state_->session.mapped(id);
  }
  void confirm(object_id id) const
    requires requires(const inner& s) { s.confirm(id); }
  {
    std::as_const(state_->session).confirm(id);
  }
  [[nodiscard]] bool tagged(object_id id) const { return penstock::is_tagged(state_->session, id); }
  [[nodiscard]] bool expect(object_id id, object_version what) const
    requires expecting_session<inner>
  {
    return state_->session.expect(id, what);
  }
  [[nodiscard]] bool resident(object_id id) const
    requires residency_session<inner>
  {
    return state_->session.resident(id);
  }
  [[nodiscard]] access_plan_sink access_plan() const
    requires planning_session<inner>
  {
    return state_->session.access_plan();
  }
  void plan_read(object_id id, std::uint64_t offset, std::uint64_t size, std::uint64_t row) const
    requires planning_session<inner>
  {
    state_->session.plan_read(id, offset, size, row);
  }

  /// See `storage_counters`.
  [[nodiscard]] storage_counters counters() const {
    storage_counters all = state_->line.counters();
    if constexpr (counting_session<inner>) {
      all.requests = all.bytes = all.slow_downs = 0;
      all += std::as_const(state_->session).counters();
    }
    return all;
  }
  /// The session that reads go to.
  [[nodiscard]] inner& inside() const noexcept { return state_->session; }
  /// How many reads it allows in flight now; 0: any number.
  [[nodiscard]] std::size_t max_in_flight() const
    requires limiting_session<inner> || requires(const Line& line) { line.max_in_flight(); }
  {
    std::size_t maximum = 0;
    if constexpr (requires(const Line& line) { line.max_in_flight(); })
      maximum = std::as_const(state_->line).max_in_flight();
    if constexpr (limiting_session<inner>) {
      const std::size_t inside = std::as_const(state_->session).max_in_flight();
      if (inside != 0 && (maximum == 0 || inside < maximum)) maximum = inside;
    }
    return maximum;
  }
  /// The oldest of its reads. The attempts are those of the storage that tries again, wherever it is.
  [[nodiscard]] std::optional<open_read> oldest_read() const
    requires observant_session<inner> || requires(const Line& line) { line.oldest_read(); }
  {
    std::optional<open_read> inside, own;
    if constexpr (observant_session<inner>) inside = std::as_const(state_->session).oldest_read();
    if constexpr (requires(const Line& line) { line.oldest_read(); }) {
      own = std::as_const(state_->line).oldest_read();
      if (own && inside && own->object == inside->object && own->offset == inside->offset)
        own->attempt = std::max(own->attempt, inside->attempt);
    }
    return own ? own : inside;
  }
  [[nodiscard]] std::string name(object_id id) const { return std::string(state_->where.names()[id]); }

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
