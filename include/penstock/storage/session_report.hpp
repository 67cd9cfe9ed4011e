// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/concepts.hpp>
#include <penstock/storage/storage_counters.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace penstock::inline v0_1 {

/// A read that has not ended.
struct open_read {
  object_id object = 0;
  std::uint64_t offset = 0;
  std::uint32_t attempt = 1;   ///< how often it was begun
  std::uint64_t age_ns = 0;    ///< since its first attempt began
  std::string_view name = {};  ///< of the object, as long as the session lives; empty: see `report_of`

  /// Whether both are reads of one range, perhaps seen at two places.
  [[nodiscard]] bool is_of(const open_read& other) const noexcept {
    const bool named = !name.empty() && !other.name.empty();
    return object == other.object && offset == other.offset && (!named || name == other.name);
  }
};

/// The older of two reads; of one that is seen at two places, its higher attempt.
[[nodiscard]] inline std::optional<open_read> older_of(std::optional<open_read> one,
                                                       std::optional<open_read> other) noexcept {
  if (!one || !other) return one ? one : other;
  const std::uint32_t attempt = one->attempt < other->attempt ? other->attempt : one->attempt;
  std::optional<open_read> kept = one->age_ns < other->age_ns ? other : one;
  if (one->is_of(*other)) kept->attempt = attempt;
  return kept;
}

/// What a session, or a reader, shows of itself: everything that is only looked at.
struct session_report {
  storage_counters counters = {};
  store_requests requests = {};   ///< those that have ended, if it counts them
  bool counted = false;           ///< whether it counts the reads that go to its store
  std::size_t max_in_flight = 0;  ///< the limit for reads now, what is beyond waits in it; 0: none
  /// the read that was requested first and has not ended, if it knows
  std::optional<open_read> oldest = {};
  std::span<const std::string> names = {};  ///< as in `storage.names()`; empty if it does not know them

  /// Adds what another one, which is read beside it, says of its reads.
  session_report& operator+=(const session_report& other) {
    counters += other.counters;
    requests += other.requests;
    counted = counted || other.counted;
    oldest = older_of(oldest, other.oldest);
    return *this;
  }
  /// Adds what the session inside says: how many reads went to the store says the innermost one that counts
  /// them; of two limits the smaller one, of two oldest reads the older one.
  void add_inside(const session_report& inside) noexcept {
    storage_counters more = inside.counters;
    storage_counters& silent = inside.counted ? counters : more;
    silent.requests = silent.bytes = silent.slow_downs = 0;
    counters += more;
    if (inside.counted) requests = inside.requests;
    limit(inside.max_in_flight);
    oldest = older_of(oldest, inside.oldest);
  }
  /// A second limit for the same reads.
  void limit(std::size_t reads) noexcept {
    if (reads != 0 && (max_in_flight == 0 || reads < max_in_flight)) max_in_flight = reads;
  }
};

/// The report of a session or a reader, with the name of the oldest read's object; an empty one if it gives
/// none. `report()` returns a copy of what it knows now, in any thread; a session that counts the reads that
/// go to its store says so with `counted`.
template <class S>
[[nodiscard]] session_report report_of([[maybe_unused]] const S& session) {
  session_report made;
  if constexpr (requires {
                  { session.report() } -> std::same_as<session_report>;
                })
    made = session.report();
  if (made.oldest && made.oldest->name.empty() && made.oldest->object < made.names.size())
    made.oldest->name = made.names[made.oldest->object];
  return made;
}

/// What decides how many reads a session gets: `max_in_flight`, `counted` and `slow_downs` of its report. It
/// is asked for at each request, and a session whose report takes a lock has `limits()`, which takes none.
template <class S>
[[nodiscard]] session_report limits_of(const S& session) {
  if constexpr (requires { session.limits(); }) return session.limits();
  return report_of(session);
}

}  // namespace penstock::inline v0_1
