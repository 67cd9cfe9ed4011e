// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/raw_ranges.hpp>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"

#include <penstock/core/error.hpp>
#include <penstock/core/file_range.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/run/run.hpp>
#include <penstock/stage/batch.hpp>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace raw_ranges_test {

namespace ps = penstock;
using penstock_test::contains;

static_assert(ps::indexed_source<ps::raw_range_source<float>>);

void write(const std::filesystem::path& path, std::size_t bytes) {
  std::ofstream(path, std::ios::binary) << std::string(bytes, 'x');
}

TEST_CASE("source/raw_ranges: rows follow each other in each file") {
  const penstock_test::temp_dir folder;
  write(folder / "0.raw", 48);
  write(folder / "1.raw", 0);
  write(folder / "2.raw", 24);
  const auto ranges = ps::raw_ranges<std::uint16_t>((folder / "{0..2}.raw").string(), ps::extents(2, 2, 3));
  CHECK(ranges.size() == 3);
  CHECK(ranges.located()->row == ps::extents(2, 2, 3));
  CHECK(ranges.describe() == "raw_ranges(3 files): 3 rows of (2, 2, 3) '2 bytes', not read");
  std::vector<ps::file_range> all;
  for (auto&& b : ranges | ps::batch(2)) all.insert(all.end(), b.values().begin(), b.values().end());
  CHECK(all == std::vector<ps::file_range>{{0, 0, 24}, {0, 24, 24}, {2, 0, 24}});
}

TEST_CASE("source/raw_ranges: files that are no rows are refused") {
  const penstock_test::temp_dir folder;
  write(folder / "a.raw", 49);
  const std::string path = (folder / "a.raw").string();
  const auto message = [&](const ps::extents& row) -> std::string {
    try {
      (void)ps::raw_ranges<float>(path, row);
    } catch (const ps::error& e) {
      return e.what();
    }
    return "";
  };
  CHECK_THAT(message(ps::extents(2, 3)), contains("has 49 bytes, which are not rows of 24") &&
                                             contains("offset 48") && contains("a.raw"));
  CHECK_THAT(message(ps::extents(2, 0)), contains("rows of shape (2, 0) are no rows of a file"));
  CHECK_THAT(message(ps::extents(~std::uint64_t{0} / 2)), contains("are no rows of a file"));
  CHECK_THAT(message(ps::extents(1, 1, 1, 1, 1, 1, 1, 1)), contains("are no rows of a file"));
  CHECK_THROWS_AS(ps::raw_ranges<float>((folder / "b.raw").string(), ps::extents(1)), ps::error);
}

}  // namespace raw_ranges_test
