// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/run/block/finish_columns.hpp>

#include <penstock/core/error.hpp>
#include <penstock/run/bad/bad_slot.hpp>
#include <penstock/run/bad/bad_tally.hpp>
#include <penstock/run/block/block.hpp>
#include <penstock/run/delivery/delivery_shell.hpp>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"

#include <cstddef>
#include <exception>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace finish_columns_test {

namespace ps = penstock;

namespace {

using positions = std::vector<ps::position>;

/// Columns in which one row has an odd shape, until it is blanked.
struct odd_columns {
  std::size_t odd = 0;
  bool blanked = false, chose = false;

  void finish(std::size_t, std::size_t, std::size_t, bool = false) const {
    if (!blanked) throw ps::slot_error{odd, ps::error(ps::errc::shape, "an odd row")};
  }
  void choose_lead(std::size_t) noexcept { chose = true; }
  void blank(std::size_t row) { blanked = row == odd; }
};
struct odd_block : ps::block {
  odd_columns columns;
};

}  // namespace

TEST_CASE(
    "run/finish_columns: where no bad sample is tolerated, an odd row fails its block by its position") {
  odd_block out;
  out.listed = true;
  out.epoch = 2;
  out.indices = {5, 6, 4};
  out.columns.odd = 1;
  ps::batch_rows batch;
  batch.slots = batch.valid = 3;
  ps::finish_columns<ps::bad_is_fatal>(out, batch);
  CHECK(out.columns.chose);
  CHECK(out.bad_slot == 1);
  REQUIRE(out.what != nullptr);
  CHECK_THROWS_WITH(std::rethrow_exception(out.what), penstock_test::contains("an odd row [position 2:6]"));
}

TEST_CASE("run/finish_columns: a bad row of two samples puts both in the ledger, and is one hole") {
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

}  // namespace finish_columns_test
