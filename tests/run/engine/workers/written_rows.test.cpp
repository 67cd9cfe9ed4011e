// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/run/engine/workers/lone_samples.hpp>

#include "support/catch.hpp"

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace written_rows_test {

namespace ps = penstock;

namespace {

struct columns {
  std::vector<int> rows = std::vector<int>(2);
  std::vector<std::size_t> taken_back, left_empty;
  void write(std::size_t row, int value) { rows.at(row) = value; }
  void unwrite(std::size_t row) { taken_back.push_back(row); }
  void blank(std::size_t row) { left_empty.push_back(row); }
  void grow(std::size_t room, std::size_t) { rows.resize(room); }
};
struct block {
  struct columns columns;
  std::vector<std::uint32_t> sources = std::vector<std::uint32_t>(2);
};
struct worker {};

}  // namespace

TEST_CASE("run/written_rows: a sample in place goes to the row of its slot") {
  block b;
  worker w;
  ps::rows_in_place<block, worker> rows{b, w, 1};
  rows(5);
  CHECK(b.columns.rows == std::vector<int>{0, 5});
  rows.take_back();
  rows.leave_empty();
  CHECK(b.columns.taken_back == std::vector<std::size_t>{1});
  CHECK(b.columns.left_empty == std::vector<std::size_t>{1});
}

TEST_CASE(
    "run/written_rows: appended rows grow, know their slots, and a sample's rows are taken back together") {
  block b;
  worker w;
  ps::rows_appended<block, worker, true> rows{b, w, 0, 0, 2};
  rows(1);
  rows.slot = 3;
  rows(2);
  rows(3);
  CHECK(b.columns.rows.size() == 16);
  CHECK(b.sources[0] == 0);
  CHECK(b.sources[2] == 3);
  CHECK(rows.row() == 3);
  rows.take_back();
  CHECK(rows.row() == 1);
  CHECK(b.columns.taken_back == std::vector<std::size_t>{2, 1});
}

TEST_CASE("run/written_rows: rows follow a loop's own copy, also if it throws") {
  block b;
  worker w;
  ps::rows_appended<block, worker, false> rows{b, w, 0, 0, 2};
  const auto loop = [&] {
    ps::detail::in_registers<decltype(rows)> into{rows};
    into.own(4);
    into.own.slot = 1;
    throw std::runtime_error("bad");
  };
  CHECK_THROWS_AS(loop(), std::runtime_error);
  CHECK(rows.slot == 1);
  CHECK(rows.count == 1);
}

}  // namespace written_rows_test
