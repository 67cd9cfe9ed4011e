// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/run/bad/bad_slot.hpp>

#include "support/catch.hpp"

#include <cstdint>
#include <set>

namespace bad_slot_test {

namespace ps = penstock;

namespace {

struct orders {
  std::uint64_t n;
  [[nodiscard]] std::uint64_t size() const { return n; }
};

ps::bad_slot slot(std::uint64_t row, bool hole) {
  ps::bad_slot one{row, {0, row}, ps::error(ps::errc::format, "bad")};
  one.hole = hole;
  return one;
}

}  // namespace

TEST_CASE("run/bad_slot: the list of a block is sorted by row, and knows its holes") {
  ps::bad_slots all;
  CHECK(all.empty());
  for (const std::uint64_t row : {9u, 2u, 5u}) all.add(slot(row, row != 5));
  all.sort();
  CHECK(all.all()[0].row == 2);
  CHECK(all.all()[2].row == 9);
  CHECK(all.holes(0, 10) == 2);
  CHECK(all.holes(3, 6) == 0);
  CHECK(all.holes(2, 1) == 1);
  CHECK(all.find_replaced(5) == nullptr);
  ps::bad_slot other = slot(7, false);
  other.substitute = ps::position{0, 1};
  all.add(other);
  CHECK(all.find_replaced(7)->substitute == ps::position{0, 1});
  all.clear();
  CHECK(all.empty());
}

TEST_CASE("run/bad_slot: a substitute is another position, a pure function of its address") {
  const orders ten{10};
  const ps::bad_is_replaced<orders> a{&ten, 1}, b{&ten, 2};
  std::uint64_t differ = 0;
  for (std::uint64_t p = 0; p < 10; ++p) {
    std::set<std::uint64_t> drawn;
    for (std::uint32_t j = 0; j < 200; ++j) {
      const ps::position q = a.draw({3, p}, j);
      CHECK(q == a.draw({3, p}, j));
      CHECK(q.epoch == 3);
      CHECK(q.index < 10);
      CHECK(q.index != p);
      drawn.insert(q.index);
      differ += !(q == b.draw({3, p}, j)) + (q.index != a.draw({4, p}, j).index);
    }
    CHECK(drawn.size() == 9);  // all positions but its own
  }
  CHECK(differ > 3000);
  // These values are part of the format and must not change.
  CHECK(a.draw({0, 0}, 0).index == 5);
  CHECK(a.draw({0, 5}, 1).index == 9);
  const orders one{1};
  CHECK_THROWS_WITH((ps::bad_is_replaced<orders>{&one, 1}.draw({0, 0}, 0)),
                    penstock_test::contains("has no other"));
}

TEST_CASE("run/bad_slot: another kind of error at the position has its facts too") {
  auto e = ps::error(ps::errc::limit, "one");
  e.in_stage("s").in_file("f").for_key("k").at_offset(3).add_context({1, 2});
  const auto made = ps::detail::error_like(e, {"two"});
  CHECK(std::string(made.what()) == "penstock: two [stage s, file f, key k, offset 3, position 1:2]");
  CHECK((made.code() == ps::errc::limit));
}

}  // namespace bad_slot_test
