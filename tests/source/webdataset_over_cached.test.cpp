// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shards of every kind of store, kept in memory.

#include <penstock/source/webdataset.hpp>
#include <penstock/storage/cached.hpp>
#include <penstock/storage/memory_cache.hpp>
#include <penstock/storage/memory_files.hpp>

#include "support/catch.hpp"
#include "support/raw_tar.hpp"
#include "support/stored.hpp"
#include "support/stored_listing.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace webdataset_over_cached_test {

TEST_CASE("source/webdataset_over_cached: shards of each store have the same samples from memory") {
  penstock_test::raw_tar tar;
  for (int i = 0; i < 60; ++i)
    tar.member("sample-" + std::to_string(i) + ".bin",
               std::string(static_cast<std::size_t>(i * 701), static_cast<char>('a' + i % 26)));
  const std::string shard = tar.end().bytes;
  const penstock::webdataset_options options{.index = penstock::index_policy::transient};
  const auto expected = penstock_test::indexed_listing(
      penstock::webdataset(penstock::memory_files().add("t.tar", shard), options));
  REQUIRE(expected.size() == 60);
  penstock_test::put_in_each_store({{"t.tar", shard}}, [&](const std::string& kind, const auto& where) {
    INFO(kind);
    for (const std::uint64_t limit : {4'000'000u, 200'000u}) {  // all of it, and a part
      const penstock::memory_cache memory(limit, {.block = 64 << 10});
      const penstock::cached near(where, memory);
      CHECK(penstock_test::indexed_listing(penstock::webdataset(near, options)) == expected);
      CHECK(penstock_test::indexed_listing(penstock::webdataset(near, options)) == expected);
      auto session = near.connect();
      CHECK(session.resident(0) == (limit > shard.size()));
    }
  });
}

}  // namespace webdataset_over_cached_test
