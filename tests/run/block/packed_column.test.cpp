// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/run/block/packed_column.hpp>

#include <penstock/core/error.hpp>
#include <penstock/device/host.hpp>

#include "support/catch.hpp"

#include <array>
#include <span>
#include <vector>

namespace packed_column_test {

namespace ps = penstock;

namespace {

/// A sequence that can only write itself.
struct only_writes {
  using unfinished = void;
  using value_type = std::int32_t;
  std::int32_t first = 0;
  std::uint64_t length = 0;

  [[nodiscard]] ps::extents shape() const { return ps::extents(length); }
  void write_to(const ps::destination<std::int32_t>& into) const {
    for (std::uint64_t i = 0; i < length; ++i) into.data()[i] = first + static_cast<std::int32_t>(i);
  }
};
static_assert(ps::array_expression<only_writes>);

const std::string somewhere = "lengths.penstock-values";

ps::packed_step two_rows() {
  ps::packed_step rows;
  // The third is the second piece of a sample of 9, cut at 5.
  rows.documents = {{0, 0, 3, 4, 0, 3}, {0, 4, 4, 4, 0, 4}, {1, 0, 4, 8, 5, 9}};
  rows.rows = 2;
  rows.capacity = 8;
  rows.pad = -1;
  rows.lengths = &somewhere;
  return rows;
}

using values = std::vector<std::int32_t>;

values written(ps::packed_step& rows, const auto& first, const auto& second, const auto& third) {
  ps::host::session session;
  ps::memory_account account;
  ps::packed_column<std::int32_t> column(session, account);
  column.place(rows);
  column.begin(3);
  column.write(0, first);
  column.write(1, second);
  column.write(2, third);
  column.finish(0, 3, 3);
  const auto view = column.view(0, 3);
  CHECK(column.bytes(0, 3).size() == view.size() * sizeof(std::int32_t));
  return {view.flat().begin(), view.flat().end()};
}

}  // namespace

TEST_CASE("sequences are written to their places, whatever they are") {
  const values expected{1, 2, 3, -1, 10, 11, 12, 13, 25, 26, 27, 28, -1, -1, -1, -1};
  ps::packed_step rows = two_rows();
  const values first{1, 2, 3}, third{20, 21, 22, 23, 24, 25, 26, 27, 28};
  CHECK(written(rows, std::span<const std::int32_t>(first), std::array<std::int32_t, 4>{10, 11, 12, 13},
                third) == expected);
  CHECK(written(rows, only_writes{1, 3}, only_writes{10, 4}, only_writes{20, 9}) == expected);
}

TEST_CASE("a slice has its chunks of sequences of any kind") {
  ps::packed_step rows = two_rows();
  rows.slices = 2;
  rows.slice = 1;
  const values first{1, 2, 3}, second{10, 11, 12, 13}, third{20, 21, 22, 23, 24, 25, 26, 27, 28};
  const values expected{2, 3, 11, 12, 27, 28, -1, -1};
  CHECK(written(rows, first, second, third) == expected);
  CHECK(written(rows, only_writes{1, 3}, only_writes{10, 4}, only_writes{20, 9}) == expected);
}

TEST_CASE("a sequence of another length is refused, and one of no dimension or two") {
  ps::packed_step rows = two_rows();
  const values right{1, 2, 3}, wrong{1, 2, 3, 4, 5}, third(9);
  CHECK_THROWS_WITH(
      written(rows, right, wrong, third),
      Catch::Contains("the sample has 5 tokens, and its length is 4 in lengths.penstock-values"));
  ps::host::session session;
  ps::memory_account account;
  ps::packed_column<std::int32_t> column(session, account);
  column.place(rows);
  column.begin(3);
  CHECK_THROWS_WITH(column.write(0, ps::tensor_view<const std::int32_t>(third.data(), ps::extents(3, 3))),
                    Catch::Contains("(3, 3)"));
}

TEST_CASE("the places of a sample that is missing are padding") {
  ps::packed_step rows = two_rows();
  ps::host::session session;
  ps::memory_account account;
  ps::packed_column<std::int32_t> column(session, account);
  column.place(rows);
  column.begin(3);
  column.write(0, values{1, 2, 3});
  column.blank(1);
  column.write(2, values(9, 7));
  column.finish(0, 3, 3, true);
  const auto view = column.view(0, 3);
  CHECK(values(view.flat().begin(), view.flat().begin() + 8) == values{1, 2, 3, -1, -1, -1, -1, -1});
  CHECK(view.cu_seqlens() == values{0, 3, 3, 7});
  CHECK(account.bytes == column.held());
  column.release();
  CHECK(account.bytes == 0);
}

TEST_CASE("rows of more bytes than 64 bits count are refused") {
  ps::packed_step rows;
  rows.rows = std::uint64_t{1} << 32;
  rows.capacity = std::uint64_t{1} << 30;
  ps::host::session session;
  ps::memory_account account;
  ps::packed_column<std::int32_t> column(session, account);
  column.place(rows);
  CHECK_THROWS_WITH(column.begin(0), Catch::Contains("larger than any memory"));
}

}  // namespace packed_column_test
