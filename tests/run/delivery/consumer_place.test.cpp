// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/delivery/delivery_shell.hpp>

#include "support/catch.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace consumer_place_test {

namespace ps = penstock;

namespace {

/// A feed of `size` samples on `world` ranks, one sample per rank and step.
ps::feed feed_of(std::uint64_t size, std::uint64_t world = 1, std::uint64_t rank = 0) {
  ps::feed_facts facts;
  facts.mine = {.size = size, .global = world, .world = world, .rank = rank, .policy = ps::tail::pad};
  facts.by_sample = facts.dealt_in_rotation = true;
  facts.chunk = 4;
  return ps::feed(facts);
}

}  // namespace

TEST_CASE("run/consumer_place: a state is of the last commit, whatever was started since") {
  ps::row_rules rules;
  rules.batched = true;
  ps::consumer_place place(rules);
  ps::feed delivered = feed_of(20);
  place.take(3);
  place.count_to(1);
  place.commit(delivered, 2);
  place.take(1);
  delivered.advance(4);
  std::vector<std::uint64_t> front;
  place.next_chunk(front);
  place.take(2);
  ps::state before;
  place.write(before, delivered);
  CHECK(before.ordinal == 0);
  CHECK(before.rows == 3);
  CHECK(before.survivors == 3);
  CHECK(before.step == 1);
  CHECK(before.bad == 2);
  CHECK(delivered.step() == 4);
  place.commit(delivered, 2);
  ps::state after;
  place.write(after, delivered);
  CHECK(after.ordinal == 4);
  CHECK(after.rows == 2);
  CHECK(after.survivors == 6);
}

TEST_CASE("run/consumer_place: rows already done in a state are skipped, and then counted as before") {
  ps::row_rules rules;
  rules.rows.keep({.first = 1});
  rules.rows.keep({.end = 4});
  rules.batched = true;
  ps::consumer_place place(rules);
  ps::feed at = feed_of(20);
  ps::state s;
  s.ordinal = 4;
  s.rows = 1;
  s.survivors = 3;
  place.seek(at, s);
  CHECK(at.step() == 4);
  CHECK(place.done_before());
  CHECK(place.look() == ps::selection::verdict::drop);
  place.go_by(1);
  CHECK_FALSE(place.done_before());
  for (int row = 0; row < 2; ++row) {  // rows 3 and 4 of the pass
    CHECK(place.look() == ps::selection::verdict::pass);
    place.take(1);
  }
  CHECK(place.look() == ps::selection::verdict::end);
}

TEST_CASE("run/consumer_place: without batches every rank resumes after the samples of all ranks") {
  for (std::uint64_t rank = 0; rank < 3; ++rank) {
    ps::row_rules rules;
    rules.ranks = 3;
    rules.rank = rank;
    rules.dealt_in_rotation = true;
    ps::consumer_place place(rules);
    ps::feed at = feed_of(20, 3, rank);
    ps::state s;
    s.world = 2;
    s.dealt = 8;
    place.seek(at, s);
    CHECK(at.step() == (rank < 2 ? 3 : 2));
    place.commit(at, 0);
    ps::state again;
    place.write(again, at);
    CHECK(again.dealt == 8);
  }
}

TEST_CASE(
    "run/consumer_place: filters' survivors are dealt to ranks, and finished steps are not dealt again") {
  ps::row_rules rules;
  rules.ranks = 2;
  rules.rank = 1;
  rules.rows.deal(1, 2);
  rules.global = 4;
  rules.batched = rules.deals = true;
  ps::consumer_place place(rules);
  ps::feed at = feed_of(100);
  ps::state s;
  s.step = 1;  // of another rank, which needed three rows for its part
  s.dealt = s.rows = s.survivors = 3;
  place.seek(at, s);
  std::vector<std::uint64_t> mine;
  for (std::uint64_t row = 0; row < 10; ++row) {
    const bool passes = place.look() == ps::selection::verdict::pass;
    if (passes) mine.push_back(row);
    passes ? place.take(1) : place.go_by(1);
  }
  CHECK(mine == std::vector<std::uint64_t>{5, 7, 9});
}

TEST_CASE("run/consumer_place: rows committed together count as if one by one") {
  ps::row_rules rules;
  rules.ranks = 2;
  rules.dealt_in_rotation = true;
  ps::consumer_place quick(rules), slow(rules);
  ps::feed delivered = feed_of(20, 2);
  for (int chunk = 0; chunk < 2; ++chunk) {
    for (int row = 0; row < 4; ++row) {
      CHECK(slow.look() == ps::selection::verdict::pass);
      slow.take(1);
      slow.count_row();
      slow.commit(delivered, 0);
      const bool handed_out = quick.deliver_next(delivered);
      CHECK(handed_out == (row != 0));
      if (!handed_out) {
        CHECK(quick.passes());
        quick.take(1);
        quick.count_row();
        quick.commit(delivered, 0);
      }
      ps::state one, other;
      quick.write(one, delivered);
      slow.write(other, delivered);
      REQUIRE(one == other);
    }
    delivered.advance(4);
    std::vector<std::uint64_t> front;
    quick.next_chunk(front);
    slow.next_chunk(front);
  }
}

TEST_CASE("run/consumer_place: with pack, a state is of the window that the next row is from") {
  ps::row_rules rules;
  rules.batched = rules.packs = true;
  ps::consumer_place place(rules);
  ps::feed delivered = feed_of(20);
  place.take(2);
  place.begin_window(delivered);
  place.take(2);
  delivered.advance(4);
  std::vector<std::uint64_t> front;
  place.next_chunk(front);
  place.take(1);
  CHECK(place.window() == 0);
  place.end_window(delivered);
  place.commit_window(3, 1, 5);
  ps::state s;
  place.write(s, delivered);
  CHECK(s.packed == std::vector<std::uint64_t>{0, 3});
  CHECK(s.ordinal == 0);
  CHECK(s.rows == 2);
  CHECK(s.step == 1);
  CHECK(s.bad == 5);

  // a run that resumes there begins with the same window, and says so until it has another row
  ps::consumer_place again(rules);
  ps::feed at = feed_of(20);
  again.seek(at, s);
  again.commit(at, 5);
  ps::state same;
  again.write(same, at);
  CHECK(same.packed == s.packed);
  again.begin_window(at);
  CHECK(again.window_rows_done() == 3);
  again.end_window(at);
  again.begin_window(at);
  CHECK(again.window() == 1);
  CHECK(again.window_rows_done() == 0);

  // the last row of the window was delivered
  place.count_to(2);
  place.commit(delivered, 5);
  place.write(s, delivered);
  CHECK(s.packed == std::vector<std::uint64_t>{1, 0});
  CHECK(s.ordinal == 4);
  CHECK(s.rows == 1);
  CHECK(s.step == 2);
}

}  // namespace consumer_place_test
