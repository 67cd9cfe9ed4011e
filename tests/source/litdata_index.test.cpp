// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/litdata_index.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/litdata_files.hpp"
#include "support/test_data.hpp"

#include <string>
#include <string_view>

namespace ps = penstock;
using penstock_test::contains;

namespace litdata_index_test {

std::string refusal(const std::string& text) {
  return penstock_test::error_of([&] { (void)ps::litdata_index_from_string(text); });
}
/// An index of one chunk, with this much more in its config, and this chunk.
std::string index_with(const std::string& config, const std::string& chunk = "") {
  return R"({"chunks": [)" +
         (chunk.empty() ? R"({"chunk_bytes": 9, "chunk_size": 2, "filename": "chunk-0-0.bin"})" : chunk) +
         R"(], "config": {)" + config + "}}";
}
const std::string one_int = R"("data_format": ["int"])";
const std::string leaf = R"({\"type\": null, \"context\": null, \"children_spec\": []})";

TEST_CASE("source/litdata_index: chunks, leaves and formats") {
  const penstock_test::litdata_folder made;
  const ps::litdata_index values = ps::read_litdata_index(made("values") + "/index.json");
  CHECK(!values.tokens);
  REQUIRE(values.chunks.shards.size() == 3);
  CHECK(values.chunks.shards[1].name == "chunk-0-1.bin");
  CHECK(values.chunks.shards[1].samples == 2);
  std::string leaves;
  for (const ps::mds_column& one : values.chunks.columns.at(0)) leaves += one.name + ":" + one.encoding + " ";
  CHECK(leaves ==
        "i:int f:float64 b:uint8 s:str raw:bytes t:tensor v:no_header_tensor:1 n:numpy w:no_header_numpy:4 "
        "z:tensor p:pkl j:bytes ");
  const ps::litdata_index zstd = ps::read_litdata_index(made("zstd") + "/index.json");
  CHECK(zstd.chunks.shards[0].packed_name == "chunk-0-0.zstd.bin");
  CHECK(zstd.chunks.shards[0].name == "chunk-0-0.bin");
  CHECK(ps::read_litdata_index(made("tokens") + "/index.json").tokens);
  const auto images = ps::litdata_index_from_string(
      index_with(R"("data_format": ["image:jpg", "image:png", "image:gif", "jpeg", "pil", "jpeg_array", )"
                 R"("video:mp4", "new:thing"])"));
  leaves.clear();
  for (const ps::mds_column& one : images.chunks.columns.at(0)) leaves += one.name + ":" + one.encoding + " ";
  CHECK(leaves == "0:jpeg 1:png 2:bytes 3:jpeg 4:pil 5:jpeg_array 6:bytes 7:bytes ");
  const auto nested = ps::litdata_index_from_string(index_with(
      R"("data_format": ["int", "str"], "data_spec": )"
      R"("[1, {\"type\": \"builtins.dict\", \"context\": \"[\\\"a\\\"]\", )"
      R"(\"children_spec\": [{\"type\": \"builtins.list\", \"context\": \"null\", \"children_spec\": [)" +
      leaf + ", " + leaf + R"(]}]}]")"));
  CHECK(nested.chunks.columns.at(0).at(1).name == "a.1");
  // Keys that are numbers, in their order; a defaultdict, whose keys are inside its context; a graph in a
  // pickle.
  const auto dict = [](const std::string& type, const std::string& context) {
    return ps::litdata_index_from_string(index_with(
        R"("data_format": ["int", "graph:pickle"], "data_spec": "[1, {\"type\": \")" + type +
        R"(\", \"context\": )" + context + R"(, \"children_spec\": [)" + leaf + ", " + leaf + R"(]}]")"));
  };
  const auto numbered = dict("builtins.dict", R"(\"[1, 0]\")").chunks.columns.at(0);
  CHECK((numbered.at(0).name == "1" && numbered.at(1).name == "0" && numbered.at(1).encoding == "pkl"));
  const auto defaults =
      dict("collections.defaultdict", R"({\"dict_context\": [\"x\", \"y\"]})").chunks.columns.at(0);
  CHECK((defaults.at(0).name == "x" && defaults.at(1).name == "y"));
}

TEST_CASE("source/litdata_index: what is no index, or of another kind, is an error that says what to do") {
  CHECK(refusal(index_with(one_int)).empty());
  CHECK_THAT(refusal("{"), contains("not JSON"));
  CHECK_THAT(refusal("[]"), contains("no list 'chunks' and no object 'config'"));
  CHECK_THAT(refusal(index_with("")), contains("'config' has no list 'data_format'"));
  CHECK_THAT(refusal(index_with(R"("data_format": [7])")),
             contains("an entry of 'data_format' is not a text"));
  CHECK_THAT(refusal(index_with(one_int + R"(, "encryption": {"algorithm": "fernet"})")),
             contains("the chunks are encrypted"));
  CHECK(ps::litdata_index_from_string(index_with(one_int + R"(, "ipc_compression": "zstd")")).rows);
  CHECK_FALSE(ps::litdata_index_from_string(index_with(one_int)).rows);
  for (const std::string level : {"sample", "batch", "chunk"}) {
    const auto known = ps::litdata_index_from_string(
        index_with(one_int + R"(, "compression": "zstd", "compression_level": ")" + level + '"'));
    CHECK(known.packed_samples == (level == "sample"));
  }
  CHECK_THAT(
      refusal(index_with(one_int + R"(, "compression": "zstd", "compression_level": "leaf")")),
      contains("compressed by 'leaf'; those of compression_level \"chunk\", \"batch\" and \"sample\""));
  CHECK_THAT(refusal(index_with(one_int + R"(, "item_loader": "ParquetLoader")")),
             contains("written for 'ParquetLoader'"));
  CHECK_THAT(refusal(index_with(one_int + R"(, "data_spec": "[1]")")),
             contains("not the specification of a tree"));
  CHECK_THAT(refusal(index_with(one_int + R"(, "data_spec": "[1, {}]")")),
             contains("a node without 'children_spec'"));
  CHECK_THAT(refusal(index_with(R"("data_format": ["int", "int"], "data_spec": "[1, )" + leaf + R"(]")")),
             contains("'data_spec' has 1 leaves, and 'data_format' 2"));
  CHECK_THAT(refusal(index_with(
                 one_int + R"(, "data_spec": "[1, {\"type\": \"builtins.list\", \"context\": \"null\", )" +
                 R"(\"children_spec\": [)" + leaf + ", " + leaf + R"(]}]")")),
             contains("'data_spec' has more leaves than 'data_format'"));
  CHECK_THAT(refusal(index_with(
                 one_int + R"(, "data_spec": "[1, {\"type\": \"builtins.dict\", \"context\": \"[\\\")" +
                 std::string(2000, 'k') + R"(\\\"]\", \"children_spec\": [)" + leaf + R"(]}]")")),
             contains("a leaf whose name is longer than 1024 bytes"));
  CHECK_THAT(refusal(index_with(one_int + R"(, "data_spec": "[1, ")")),
             contains("'data_spec': the description is not JSON"));
  CHECK_THAT(
      refusal(index_with(R"("data_format": ["int", "int"], "data_spec": "[1, {\"type\": \"builtins.dict\", )"
                         R"(\"context\": \"[\\\"a\\\", \\\"a\\\"]\", \"children_spec\": [)" +
                         leaf + ", " + leaf + R"(]}]")")),
      contains("two leaves are called 'a'"));
  CHECK_THAT(refusal(index_with(one_int, R"({"chunk_bytes": 9, "chunk_size": 2, "filename": "../a"})")),
             contains("outside its folder"));
  CHECK_THAT(refusal(index_with(one_int, R"({"chunk_bytes": 9, "filename": "a"})")),
             contains("no 'chunk_size'"));
  CHECK_THAT(penstock_test::error_of([] { (void)ps::read_litdata_index("/no such folder/index.json"); }),
             contains("/no such folder/index.json"));
}

}  // namespace litdata_index_test
