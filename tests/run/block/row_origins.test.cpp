// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/block/block.hpp>

#include <penstock/run/delivery/delivery_shell.hpp>
#include <penstock/run/feed/feed.hpp>

#include "support/catch.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace row_origins_test {

namespace ps = penstock;

namespace {

using positions = std::vector<ps::position>;

positions listed(std::span<const ps::position> all) { return {all.begin(), all.end()}; }

/// Samples of one rank, in chunks of four, with every third left out.
struct packer {
  ps::feed delivered;
  ps::consumer_place place;
  ps::block chunk;
  bool there = false;

  static ps::feed fresh() {
    ps::feed_facts facts;
    facts.mine = {.size = 21, .global = 1, .policy = ps::tail::pad};
    facts.by_sample = true;
    facts.chunk = 4;
    ps::feed made(facts);
    made.limit(1);
    return made;
  }
  static ps::row_rules rules() {
    ps::row_rules made;
    made.batched = true;
    return made;
  }
  packer() : delivered(fresh()), place(rules()) {}

  /// The next row, or false at the end.
  bool find_row() {
    while (true) {
      if (!there) {
        ps::feed at = delivered;
        if (!at.more() || delivered.epoch() != 0) return false;
        at.prepare(chunk, 1);
        chunk.sources.clear();
        for (std::uint32_t slot = 0; slot < chunk.slots; ++slot)
          if (chunk.index(slot) % 3 != 2) chunk.sources.push_back(slot);
        chunk.rows = chunk.sources.size();
        there = true;
      }
      while (place.row() < chunk.rows) {
        if (place.look() == ps::selection::verdict::pass) return true;
        place.go_by(1);
      }
      delivered.advance(chunk.batches[0].valid);
      std::vector<std::uint64_t> none;
      place.next_chunk(none);
      there = false;
    }
  }
  /// A batch of up to two rows: the first of one sample, the second of two, wherever chunks end.
  ps::row_origins pack() {
    ps::row_origins rows;
    for (int taken = 0; taken < 3 && find_row(); ++taken) {
      if (taken == 2)
        chunk.add_to_last(rows, place.row());
      else
        chunk.add_positions(rows, place.row(), 1);
      place.take(1);
    }
    place.count_to(place.number() + 1);
    return rows;
  }
};

}  // namespace

TEST_CASE("run/row_origins: one origin a row is a list of positions; one more changes only its row") {
  ps::row_origins rows;
  CHECK(rows.empty());
  CHECK(rows.rows() == 0);
  ps::position* into = rows.add_rows(3);
  for (std::uint64_t i = 0; i < 3; ++i) into[i] = {1, 10 + i};
  CHECK(rows.one_each());
  CHECK(rows.rows() == 3);
  CHECK(listed(rows.of(1)) == positions{{1, 11}});
  rows.add_to_last({1, 20});
  rows.add_to_last({1, 21});
  CHECK_FALSE(rows.one_each());
  CHECK(rows.rows() == 3);
  *rows.add_rows(1) = {1, 30};
  rows.add_to_last({2, 31});
  into = rows.add_rows(2);
  into[0] = {2, 40};
  into[1] = {2, 41};
  CHECK(rows.rows() == 6);
  CHECK(listed(rows.of(0)) == positions{{1, 10}});
  CHECK(listed(rows.of(2)) == positions{{1, 12}, {1, 20}, {1, 21}});
  CHECK(listed(rows.of(3)) == positions{{1, 30}, {2, 31}});
  CHECK(listed(rows.of(5)) == positions{{2, 41}});
  CHECK(rows.all().size() == 9);
  rows.clear();
  CHECK(rows.one_each());
  CHECK(rows.rows() == 0);
}

TEST_CASE("run/row_origins: states count rows of two samples exactly, wherever a run stops") {
  packer whole;
  std::vector<positions> batches;
  std::vector<ps::state> states;
  positions all;
  while (true) {
    const ps::row_origins rows = whole.pack();
    if (rows.empty()) break;
    batches.push_back(rows.all());
    all.insert(all.end(), rows.all().begin(), rows.all().end());
    if (rows.all().size() == 3) {
      CHECK(rows.rows() == 2);
      CHECK(listed(rows.of(1)) == positions(rows.all().begin() + 1, rows.all().end()));
    }
    whole.place.commit(whole.delivered, 0);
    states.emplace_back();
    whole.place.write(states.back(), whole.delivered);
  }
  positions expected;
  for (std::uint64_t i = 0; i < 21; ++i)
    if (i % 3 != 2) expected.push_back({0, i});
  CHECK(all == expected);

  std::uint64_t had = 0;
  for (std::size_t stop = 0; stop < states.size(); ++stop) {
    had += batches[stop].size();
    CHECK(states[stop].survivors == had);
    CHECK(states[stop].step == stop + 1);
    packer again;
    ps::feed at = packer::fresh();
    again.place.seek(at, states[stop]);
    again.delivered = at;
    for (std::size_t next = stop + 1; next < batches.size(); ++next) {
      const ps::row_origins rows = again.pack();
      CHECK(rows.all() == batches[next]);
      again.place.commit(again.delivered, 0);
    }
    CHECK(again.pack().empty());
  }
}

}  // namespace row_origins_test
