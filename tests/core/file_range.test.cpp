// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/file_range.hpp>

#include "support/catch.hpp"

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

#include <type_traits>
#include <vector>

namespace file_range_test {

namespace ps = penstock;

static_assert(std::is_trivially_copyable_v<ps::file_range> && sizeof(ps::file_range) == 24);

TEST_CASE("core/file_range: it is a column of its own in a batch") {
  const std::vector<ps::file_range> all{{0, 128, 40}, {0, 168, 40}, {2, 128, 40}};
  std::vector<ps::file_range> seen;
  for (auto&& b : ps::from(all) | ps::batch(2)) {
    const auto ranges = b.values();
    seen.insert(seen.end(), ranges.begin(), ranges.end());
  }
  CHECK(seen == all);
  CHECK(ps::file_range{1, 2, 3} != ps::file_range{1, 2, 4});
}

}  // namespace file_range_test
