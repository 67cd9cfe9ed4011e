// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/energon_index.hpp>

#include "support/catch.hpp"
#include "support/raw_tar.hpp"
#include "support/temp_dir.hpp"

#include <penstock/source/webdataset.hpp>

#include <cstdint>
#include <fstream>
#include <string>

TEST_CASE("source/energon_index: the policy by itself") {
  const penstock_test::temp_dir dir;
  const std::string shard = (dir / "s.tar").string();
  penstock_test::raw_tar().member("a.txt", "1").member("b.txt", "2").end().save(shard);
  std::string offsets;
  for (const std::uint64_t offset : {0u, 1024u, 2048u})
    for (int i = 0; i < 8; ++i) offsets += static_cast<char>(offset >> (8 * i));
  std::ofstream(shard + ".idx", std::ios::binary) << offsets;
  CHECK(penstock::webdataset(shard, penstock::energon_index).size() == 2);
  std::ofstream(shard + ".idx", std::ios::binary) << offsets.substr(8);
  CHECK_THROWS_WITH(
      penstock::webdataset(shard, penstock::energon_index),
      penstock_test::contains("the Energon index") && penstock_test::contains("says that sample 0"));
}
