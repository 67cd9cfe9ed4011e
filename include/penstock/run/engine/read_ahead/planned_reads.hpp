// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/concepts.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace penstock::inline v0_1 {

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

}  // namespace penstock::inline v0_1
