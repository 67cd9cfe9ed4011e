// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/engine/read_ahead/range_list.hpp>

#include "support/catch.hpp"
#include "support/slow_session.hpp"

#include <cstdint>

namespace range_list_test {

namespace ps = penstock;

namespace {

/// A session that says of one object that it is in memory.
struct half_resident : penstock_test::slow_session {
  [[nodiscard]] static bool resident(ps::object_id id) noexcept { return id == 1; }
};
struct shown : half_resident {
  static constexpr ps::session_traits traits = {.mapped = ps::mapped_objects::all};
  std::uint64_t hints = 0;
  [[nodiscard]] ps::bytes_view view(ps::object_id, std::uint64_t, std::uint64_t) const { return {}; }
  void confirm(ps::object_id) const {}
  void will_need(ps::object_id, std::uint64_t, std::uint64_t size) { hints += size; }
};

}  // namespace

TEST_CASE("run/range_list: lists what must be read, with the row of its sample") {
  half_resident session;
  ps::range_list list;
  list.stand_at(7);
  list(session, 0, 10, 4);
  list(session, 1, 20, 5);  // in memory
  list.stand_at(8);
  list(session, 2, 30, 6);
  REQUIRE(list.entries().size() == 2);
  CHECK(list.bytes() == 10);
  CHECK(list.resident() == 1);
  CHECK(list.entries()[0].row == 7);
  CHECK(list.entries()[0].offset == 10);
  CHECK(list.entries()[1].row == 8);
  CHECK(list.entries()[1].object == 2);
  CHECK(list.entries()[1].from.self() == &session);

  list.clear();
  CHECK(list.entries().empty());
  CHECK(list.bytes() == 0);
  CHECK(list.resident() == 0);
}

TEST_CASE("run/range_list: a session that shows its bytes in place gets a hint") {
  shown session;
  ps::range_list list;
  list(session, 0, 10, 4);
  CHECK(list.entries().empty());
  CHECK(session.hints == 4);
}

}  // namespace range_list_test
