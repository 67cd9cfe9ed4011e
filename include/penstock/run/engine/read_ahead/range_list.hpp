// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_report.hpp>
#include <penstock/storage/session_view.hpp>

#include <cstdint>
#include <vector>

namespace penstock::inline v0_1 {

class planned_reads;
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
  void clear() noexcept;

 private:
  void add(const entry& one);

  std::vector<entry> entries_;
  std::uint64_t row_ = 0, bytes_ = 0, resident_ = 0;
  bool planned_ = false, hints_ = false;
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

inline void range_list::clear() noexcept {
  entries_.clear();
  bytes_ = resident_ = 0;
}

inline void range_list::add(const entry& one) {
  entries_.push_back(one);
  bytes_ += one.size;
}

}  // namespace penstock::inline v0_1
