// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/block/row_origins.hpp>

#include <penstock/run/bad/bad_slot.hpp>
#include <penstock/run/bad/bad_tally.hpp>
#include <penstock/run/block/block.hpp>
#include <penstock/run/block/finish_columns.hpp>
#include <penstock/run/delivery/consumer_place.hpp>
#include <penstock/run/delivery/delivery_shell.hpp>
#include <penstock/run/engine/workers/ring.hpp>
#include <penstock/run/feed/feed.hpp>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace row_origins_test {

namespace ps = penstock;

namespace {

using positions = std::vector<ps::position>;

positions listed(std::span<const ps::position> all) { return {all.begin(), all.end()}; }

/// Columns in which one row has an odd shape, until it is blanked.
struct odd_columns {
  std::size_t odd = 0;
  bool blanked = false;

  void finish(std::size_t, std::size_t, std::size_t, bool = false) const {
    if (!blanked) throw ps::slot_error{odd, ps::error(ps::errc::shape, "an odd row")};
  }
  void choose_lead(std::size_t) const noexcept {}
  void blank(std::size_t row) { blanked = row == odd; }
};
struct odd_block : ps::block {
  odd_columns columns;
};
struct no_chain {
  struct worker {};
};

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

TEST_CASE("run/row_origins: a bad row of two samples puts both in the ledger, and is one hole") {
  odd_block out;
  out.from_batches = out.listed = true;
  out.columns.odd = 1;
  *out.gathered.add_rows(1) = {3, 7};
  *out.gathered.add_rows(1) = {3, 9};
  out.gathered.add_to_last({3, 8});
  *out.gathered.add_rows(1) = {3, 10};
  out.epoch = 3;
  for (std::size_t row = 0; row < 3; ++row) out.indices.push_back(out.gathered.of(row).front().index);
  ps::batch_rows batch;
  batch.slots = batch.valid = 3;
  ps::finish_columns<ps::bad_is_skipped>(out, batch);
  CHECK(out.what == nullptr);
  CHECK(out.columns.blanked);
  CHECK(out.bad.holes(0, 3) == 1);
  CHECK(ps::delivery_shell::positions(out, 0, 3) == positions{{3, 7}, {3, 9}, {3, 8}, {3, 10}});

  const penstock_test::temp_dir folder;
  const std::string path = (folder.path() / "bad").string();
  {
    ps::tolerant_tally tally(ps::world{}, "bad_samples::skip(2)", 2, path);
    out.bad.sort();
    for (const ps::bad_slot& one : out.bad.all()) tally.see(3, one);
    const auto place_of = [](void*, ps::position at) {
      return ps::sample_place{.source = at.index, .key = "", .file = ""};
    };
    tally.commit(3, place_of, nullptr);
    CHECK(tally.count(3) == 2);
    CHECK(tally.counts(3).skipped == 2);
    CHECK_THROWS_AS(tally.see(3, out.bad.all().front()), ps::error);  // the budget counts samples
  }
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  CHECK_THAT(text.str(), penstock_test::contains("\"index\": 8"));
  CHECK_THAT(text.str(), penstock_test::contains("\"index\": 9"));
}

}  // namespace row_origins_test
