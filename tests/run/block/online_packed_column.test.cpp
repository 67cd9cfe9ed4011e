// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/block/online_packed_column.hpp>

#include <penstock/device/host.hpp>

#include "support/catch.hpp"

#include <cstdint>
#include <vector>

namespace online_packed_column_test {

namespace ps = penstock;

TEST_CASE("run/online_packed_column: from a chunk to a window, and from there into rows") {
  using column = ps::online_packed_column<std::int32_t>;
  ps::host::session session;
  ps::memory_account account;
  column chunk(session, account), window(session, account), batch(session, account);
  chunk.begin(3);
  chunk.write(0, std::vector<std::int32_t>{1, 2, 3});
  chunk.write(1, std::vector<std::int32_t>{});
  chunk.write(2, std::vector<std::int32_t>{4, 5});
  CHECK(chunk.sequence_length(0) == 3);
  CHECK(chunk.sequence_length(1) == 0);
  window.begin(1);
  window.copy(0, chunk, 2, 1);
  window.grow(4, 1);
  window.copy(1, chunk, 0, 2);
  CHECK(window.sequence_length(0) == 2);
  CHECK(window.sequence_length(1) == 3);

  ps::packed_step rows;
  rows.rows = 2;
  rows.capacity = 4;
  rows.pad = -1;
  batch.place(rows);
  batch.begin(1);
  batch.grow(3, 0);
  batch.reserve_rows(2, 0);
  CHECK_THROWS_WITH(batch.reserve_rows(std::size_t{1} << 60, 0), Catch::Contains("larger than any memory"));
  rows.documents = {{0, 0, 2, 2, 1, 3}, {0, 2, 0, 0, 0, 0}, {1, 0, 2, 2, 0, 2}};
  batch.lay(0, window, 1);
  batch.lay(1, window, 2);
  batch.lay(2, window, 0);
  batch.finish(0, 3, 3);
  const auto view = batch.view(0, 3);
  CHECK(std::vector<std::int32_t>(view.flat().begin(), view.flat().end()) ==
        std::vector<std::int32_t>{2, 3, -1, -1, 4, 5, -1, -1});
  CHECK(batch.bytes(0, 3).size() == 8 * sizeof(std::int32_t));
  CHECK(chunk.bytes(0, 3).empty());
}

TEST_CASE("run/online_packed_column: only sequences are put into rows") {
  ps::host::session session;
  ps::memory_account account;
  ps::online_packed_column<float> chunk(session, account);
  chunk.begin(1);
  const float values[6] = {};
  CHECK_THROWS_WITH(chunk.write(0, ps::tensor_view<const float>(values, ps::extents(2, 3))),
                    Catch::Contains("sequences of one dimension") && Catch::Contains("(2, 3)"));
}

}  // namespace online_packed_column_test
