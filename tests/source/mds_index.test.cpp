// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/mds_index.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/mds_files.hpp"

#include <penstock/storage/memory_files.hpp>

#include <string>

namespace ps = penstock;
using penstock_test::contains;

namespace mds_index_test {

/// An index of one shard, with this text in the place of another.
std::string index_text(std::string_view from = "", std::string_view to = "") {
  std::string text =
      R"({"version": 2, "shards": [{"column_encodings": ["int", "str"], "column_names": ["x", "y"], )"
      R"("column_sizes": [8, null], "compression": null, "format": "mds", "hashes": [], )"
      R"("raw_data": {"basename": "0/s.mds", "bytes": 9, "hashes": {}}, "samples": 3, "zip_data": null}]})";
  if (!from.empty()) text.replace(text.find(from), from.size(), to);
  return text;
}
std::string refusal(const std::string& text) {
  return penstock_test::error_of([&] { (void)ps::mds_index_from_string(text); });
}

TEST_CASE("source/mds_index: what an index says") {
  const ps::mds_index one = ps::mds_index_from_string(index_text());
  REQUIRE(one.shards.size() == 1);
  CHECK(one.shards[0].name == "0/s.mds");
  CHECK(one.shards[0].bytes == 9);
  CHECK(one.shards[0].samples == 3);
  CHECK(one.shards[0].packed_name.empty());
  REQUIRE(one.columns.size() == 1);
  CHECK(one.columns[0] == std::vector<ps::mds_column>{{"x", "int", 8}, {"y", "str", 0}});
  CHECK(ps::mds_index_from_string(R"({"version": 2, "shards": []})").shards.empty());

  const penstock_test::mds_folder made;
  const ps::mds_index packed = ps::read_mds_index(made("zstd") + "/index.json");
  REQUIRE(packed.shards.size() == 3);
  CHECK(packed.shards[1].packed_name == "shard.00001.mds.zstd");
  CHECK(packed.shards[1].compression == "zstd:3");
  const ps::memory_files stored =
      ps::memory_files().add("index.json", penstock_test::mds_bytes("zstd/index.json"));
  CHECK(ps::read_mds_index(stored).shards.size() == 3);
}

TEST_CASE("source/mds_index: checksums and columns are part of a shard's content") {
  const auto content = [](const std::string& text) {
    return ps::mds_index_from_string(text).shards[0].content;
  };
  const std::uint64_t plain = content(index_text());
  CHECK(content(index_text("\"hashes\": {}", R"("hashes": {"sha1": "ab"})")) != plain);
  CHECK(content(index_text("\"y\"", "\"z\"")) != plain);
  CHECK(content(index_text("\"samples\": 3", "\"samples\": 4")) == plain);
}

TEST_CASE("source/mds_index: anything else is an error") {
  CHECK_THAT(refusal("{"), contains("not JSON"));
  CHECK_THAT(refusal("[]"), contains("has no list 'shards'"));
  CHECK_THAT(refusal(R"({"shards": []})"), contains("'version' is missing or not 2"));
  CHECK_THAT(refusal(index_text("\"version\": 2", "\"version\": 3")),
             contains("not 2, the only known version"));
  CHECK_THAT(refusal(index_text("\"mds\"", "\"csv\"")), contains("not of format \"mds\""));
  CHECK_THAT(refusal(index_text("0/s.mds", "../s.mds")), contains("outside its folder: '../s.mds'"));
  CHECK_THAT(refusal(index_text("0/s.mds", "/s.mds")), contains("outside its folder"));
  CHECK_THAT(refusal(index_text("0/s.mds", "http://x/s.mds")), contains("outside its folder"));
  CHECK_THAT(refusal(index_text("\"y\"", "\"x\"")), contains("two columns are called 'x'"));
  CHECK_THAT(refusal(index_text("\"str\"", "\"\"")), contains("a name or encoding that is not a text"));
  std::string many = "\"a\"";
  for (int i = 0; i < 4096; ++i) many += ", \"a\"";
  CHECK_THAT(refusal(index_text("\"x\", \"y\"", many)), contains("4097 columns; the limit is 4096"));
  CHECK_THAT(refusal(index_text("[8, null]", "[8]")), contains("of different lengths"));
  CHECK_THAT(refusal(index_text("[8, null]", "[8, -1]")), contains("a size that is no number"));
  CHECK_THAT(refusal(index_text("[8, null]", "[8, 4294967296]")), contains("a size that is no number"));
  CHECK_THAT(refusal(index_text("\"bytes\": 9", "\"bytes\": -9")), contains("no 'bytes' that is a number"));
  CHECK_THAT(refusal(index_text("\"samples\": 3", "\"samples\": 3.5")), contains("no 'samples'"));
  CHECK_THAT(refusal(index_text("\"basename\"", "\"name\"")), contains("no 'basename'"));
  CHECK_THAT(refusal(index_text("[8, null]", std::string(20, '[') + std::string(20, ']'))),
             contains("nested more than 16 deep"));
  const penstock_test::mds_folder made;
  made.write("bad/index.json", "{");
  CHECK_THAT(penstock_test::error_of([&] { (void)ps::read_mds_index(made("bad") + "/index.json"); }),
             contains("bad/index.json"));
  CHECK_THAT(penstock_test::error_of([&] { (void)ps::read_mds_index(made("none") + "/index.json"); }),
             contains("none/index.json"));
  CHECK_THAT(penstock_test::error_of([&] { (void)ps::read_mds_index(ps::memory_files()); }),
             contains("an index is one object, and the storage has 0"));
}

}  // namespace mds_index_test
