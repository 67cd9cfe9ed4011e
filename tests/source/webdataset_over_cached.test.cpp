// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Adds files that are kept in memory to the stores from which the tests of webdataset read; see
// support/stored.hpp.

#include <penstock/source/webdataset.hpp>
#include <penstock/storage/cached.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/memory_cache.hpp>

#include "support/catch.hpp"
#include "support/raw_tar.hpp"
#include "support/stored.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace webdataset_over_cached_test {

const bool added = penstock_test::add_store(
    {"cached in memory", [] { return true; },
     [](const std::vector<std::string>& paths) {
       const penstock::memory_cache memory(std::uint64_t{1} << 20, {.block = 64 << 10});
       return penstock_test::stored(
           penstock::cached(penstock_test::stored(penstock::file(paths)), memory));
     }});

TEST_CASE("source/webdataset_over_cached: the tests of webdataset read what is kept in memory, too") {
  CHECK(added);
  std::vector<std::string> kinds;
  const std::string shard = penstock_test::raw_tar().member("a.txt", "1").end().bytes;
  penstock_test::put_in_each_store({{"t.tar", shard}}, [&](const std::string& kind, const auto& where) {
    kinds.push_back(kind);
    CHECK(penstock::webdataset(where, {.index = penstock::index_policy::transient}).size() == 1);
  });
  CHECK(std::count(kinds.begin(), kinds.end(), "cached in memory") == 1);
}

}  // namespace webdataset_over_cached_test
