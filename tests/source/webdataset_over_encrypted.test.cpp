// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Adds encrypted copies of files to the stores from which the tests of webdataset read; see
// support/stored.hpp.

#include <penstock/source/webdataset.hpp>
#include <penstock/storage/decrypting.hpp>
#include <penstock/storage/file.hpp>

#include "support/catch.hpp"
#include "support/encrypted.hpp"
#include "support/raw_tar.hpp"
#include "support/stored.hpp"
#include "support/temp_dir.hpp"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace webdataset_over_encrypted_test {

constexpr std::size_t segment = 700;  // small, so that members lie in several

const bool added = penstock_test::add_store(
    {"encrypted", [] { return true; },
     [](const std::vector<std::string>& paths) {
       static const penstock_test::temp_dir place;
       static std::map<std::string, std::string> known;  // what was encrypted as what
       std::vector<std::string> names;
       for (const std::string& path : paths) {
         names.push_back((place / std::filesystem::absolute(path).string().substr(1)).string());
         std::filesystem::create_directories(std::filesystem::path(names.back()).parent_path());
         std::ifstream in(path, std::ios::binary);
         std::string bytes{std::istreambuf_iterator<char>(in), {}};
         if (known.contains(names.back()) && known[names.back()] == bytes) continue;
         std::ofstream(names.back(), std::ios::binary)
             << penstock_test::encrypted(bytes, {.segment_size = segment});
         known[names.back()] = std::move(bytes);
       }
       return penstock_test::stored(penstock::decrypting<penstock::aes_256_gcm>(
           penstock::file(std::move(names)), penstock_test::test_key(), {.segment_size = segment}));
     }});

}  // namespace webdataset_over_encrypted_test

TEST_CASE("source/webdataset_over_encrypted: the tests of webdataset read encrypted files, too") {
  CHECK(webdataset_over_encrypted_test::added);
  std::vector<std::string> kinds;
  const std::string shard = penstock_test::raw_tar().member("a.txt", "1").end().bytes;
  penstock_test::put_in_each_store({{"t.tar", shard}}, [&](const std::string& kind, const auto& where) {
    kinds.push_back(kind);
    CHECK(penstock::webdataset(where, {.index = penstock::index_policy::transient}).size() == 1);
  });
  CHECK(std::count(kinds.begin(), kinds.end(), "encrypted") == 1);
}
