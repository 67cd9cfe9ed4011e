// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_report.hpp>
#include <penstock/storage/session_view.hpp>

#include <algorithm>
#include <vector>

namespace penstock::inline v0_1 {

struct placement;

/// The ranges of bytes that some samples will be read from, as a reader's `ranges` reports them.
///
/// A session that shows its bytes in place is given a hint instead, and a session whose bytes are already in
/// memory (`resident`) is left alone, since fetching would only make another copy.
class range_list {
 public:
  /// A range, and the row of the sample that is read from it.
  struct entry {
    session_view from;
    std::uint64_t offset, size, row;
    object_id object;
  };

  /// From now on, gives every session a hint instead: nothing will be fetched.
  void only_hint() noexcept { hints_ = true; }
  /// Sets the row of the ranges that follow.
  void stand_at(std::uint64_t row) noexcept { row_ = row; }
  template <class Session>
  void operator()(Session& session, object_id object, std::uint64_t offset, std::uint64_t size) {
    if constexpr (planning_session<Session>) planned_ = planned_ || session.access_plan().self != nullptr;
    if (all_mapped<Session>() || hints_)
      will_need(session, object, offset, size);
    else if (is_resident(session, object))
      ++resident_;
    else
      add({session, offset, size, row_, object});
  }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  /// How many ranges were left out because they are already in memory.
  [[nodiscard]] std::uint64_t resident() const noexcept { return resident_; }
  /// Whether a session wants to know what is read far ahead; see `planning_session`.
  [[nodiscard]] bool planned() const noexcept { return planned_; }
  [[nodiscard]] std::vector<entry>& entries() noexcept { return entries_; }
  void clear() noexcept {
    entries_.clear();
    bytes_ = resident_ = 0;
  }

 private:
  void add(const entry& one) {
    entries_.push_back(one);
    bytes_ += one.size;
  }

  std::vector<entry> entries_;
  std::uint64_t row_ = 0, bytes_ = 0, resident_ = 0;
  bool planned_ = false, hints_ = false;
};

/// Passes the ranges that a reader's `ranges` reports on to sessions that plan by them, and remembers these
/// sessions.
class planned_reads {
 public:
  /// Begins the samples of some rows, of which those before the first unknown one were told, if they were
  /// begun before.
  void begin() noexcept { unknown_ = false; }
  /// Sets the row of the ranges that follow.
  void stand_at(std::uint64_t row) noexcept { row_ = row; }
  /// Only reading can tell where the sample of this row is: later ones are left out, so that they can be
  /// told in order another time.
  void unknown() noexcept {
    if (!unknown_) first_unknown_ = row_;
    unknown_ = true;
  }
  [[nodiscard]] bool all_known() const noexcept { return !unknown_; }
  template <class Session>
  void operator()(Session& session, object_id object, std::uint64_t offset, std::uint64_t size) {
    if constexpr (planning_session<Session>) {
      if (unknown_ || row_ < first_unknown_) return;
      if (knows(session.access_plan())) session.plan_read(object, offset, size, row_);
    }
  }

  [[nodiscard]] bool has_room() const {
    return std::ranges::all_of(plans_, [](const access_plan_sink& one) { return one.has_room(one.self); });
  }
  /// Tells all of them; see `access_plan_sink`.
  void tell(std::uint64_t row, std::uint64_t seen, bool ends) const noexcept {
    for (const access_plan_sink& one : plans_) one.stand_at(one.self, row, seen, ends);
  }
  void forget() noexcept {
    first_unknown_ = 0;
    unknown_ = false;
    for (const access_plan_sink& one : plans_) one.forget(one.self);
  }

 private:
  [[nodiscard]] bool knows(const access_plan_sink& one) {
    if (one.self == nullptr) return false;
    if (!std::ranges::any_of(plans_, [&](const access_plan_sink& each) { return each.self == one.self; }))
      plans_.push_back(one);
    return true;
  }

  std::vector<access_plan_sink> plans_;
  std::uint64_t row_ = 0, first_unknown_ = 0;
  bool unknown_ = false;
};

/// Requests bytes on behalf of `read_ahead`: the plan's code, which knows its reader and its orders.
struct hinter {
  void* self = nullptr;  ///< null: the source takes no hints
  /// Requests the samples of a placement. May throw. Null if there are ranges to request instead.
  void (*hint)(void* self, const placement& samples) = nullptr;
  /// For readers that take fetched bytes: lists the ranges of the samples of a placement instead. May throw.
  void (*ranges)(void* self, const placement& samples, range_list& into) = nullptr;
  /// Tells the `planning_session`s the ranges of the samples of a placement; null if there are none.
  /// Another thread calls this one. May throw.
  void (*plan_read)(void* self, const placement& samples, planned_reads& into) = nullptr;
  /// Of the reader's sessions.
  session_report (*report)(void* self) = nullptr;
};

}  // namespace penstock::inline v0_1
