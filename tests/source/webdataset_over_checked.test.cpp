// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Adds files that are compared with a list of hashes to the stores from which the tests of webdataset read;
// see support/stored.hpp.

#include <penstock/core/error.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/storage/checked.hpp>
#include <penstock/storage/file.hpp>

#include "support/catch.hpp"
#include "support/raw_tar.hpp"
#include "support/stored.hpp"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace webdataset_over_checked_test {

/// The hashes of these files, and of all that lies beside them.
penstock::sha256_list hashes_of(const std::vector<std::string>& paths) {
  std::vector<std::string> all = paths;
  for (const std::string& path : paths)
    for (const auto& one : std::filesystem::directory_iterator(std::filesystem::absolute(path).parent_path()))
      if (one.is_regular_file() && one.path().filename().string().starts_with(
                                       std::filesystem::path(path).filename().string() + "."))
        all.push_back(path + one.path().filename().string().substr(std::filesystem::path(path).filename().string().size()));
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return penstock::sha256_of(penstock::file(std::move(all)));
}

const bool added = penstock_test::add_store(
    {"checked", [] { return true; },
     [](const std::vector<std::string>& paths) {
       return penstock_test::stored(penstock::checked(penstock::file(paths), hashes_of(paths)));
     }});

TEST_CASE("source/webdataset_over_checked: the tests of webdataset read files that are compared, too") {
  CHECK(added);
  std::vector<std::string> kinds;
  const std::string shard = penstock_test::raw_tar().member("a.txt", "1").end().bytes;
  penstock_test::put_in_each_store({{"t.tar", shard}}, [&](const std::string& kind, const auto& where) {
    kinds.push_back(kind);
    CHECK(penstock::webdataset(where, {.index = penstock::index_policy::transient}).size() == 1);
  });
  CHECK(std::count(kinds.begin(), kinds.end(), "checked") == 1);
}

TEST_CASE("source/webdataset_over_checked: a harmed shard is an error in every store, and no sample of it comes") {
  const std::string shard = penstock_test::raw_tar().member("a.txt", "1").member("b.txt", "2").end().bytes;
  std::string harmed = shard;
  harmed[512] = static_cast<char>(harmed[512] ^ 1);
  const penstock::sha256_list list({{"t.tar", penstock::sha256_of(penstock::bytes_of(shard))}});
  for (const bool good : {true, false})
    penstock_test::put_in_each_store(
        {{"t.tar", good ? shard : harmed}}, [&](const std::string& kind, const auto& where) {
          CAPTURE(kind);
          std::size_t samples = 0;
          std::string failed;
          try {
            const penstock::webdataset data(penstock::checked(where, list),
                                            {.index = penstock::index_policy::transient});
            for (auto&& one : data.epoch(0)) {
              static_cast<void>(one);
              ++samples;
            }
          } catch (const penstock::error& e) {
            failed = e.what();
          }
          CHECK(samples == (good ? 2u : 0u));
          CHECK((failed.find("SHA-256") != std::string::npos) == !good);
        });
}

}  // namespace webdataset_over_checked_test
