// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/parquet.hpp>

#include <penstock/codec/arrow_value.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/arrow_ipc.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/cells.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/file.hpp>

#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "support/format_peers.hpp"
#include "support/nested_text.hpp"
#include "support/temp_dir.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ps = penstock;

namespace parquet_nested_test {

using ps::arrow_list;
using ps::arrow_struct;
using ps::arrow_value;
using ps::field;

constexpr int seeds = 40;

std::string report(std::string_view name) {
  return penstock_test::fixture("reports/" + std::string(name)).string();
}

// As in docs/formats.md.
namespace chats {

using namespace penstock;

using message = arrow_struct<field<"role", std::string>, field<"content", std::string>>;

struct chat_text {
  template <class Messages>
  std::string operator()(const Messages& messages) const {
    std::string all;
    for (const auto& one : messages)
      all.append("<|").append(get<"role">(one)).append("|>").append(get<"content">(one)).append("\n");
    return all;
  }
};

/// The texts of the chats in a file of the current folder, and their contents alone.
std::pair<std::vector<std::string>, std::vector<std::string>> read() {
  auto texts = penstock::parquet("chats.parquet") | decode<field<"messages", arrow_list<message>>> |
               map<"messages">(chat_text());
  auto named = penstock::parquet("chats.parquet") | cells() | map([](const auto& row) {
                 std::string all;
                 for (const arrow_cell one : row["messages"].list())
                   all.append(one.field("content").as<std::string_view>()).append("\n");
                 return all;
               });
  std::pair<std::vector<std::string>, std::vector<std::string>> found;
  auto run = texts.open();
  for (const auto& row : run) found.first.emplace_back(get<"messages">(row));
  auto other = named.open();
  for (const auto& text : other) found.second.emplace_back(text);
  return found;
}

}  // namespace chats

const std::vector<std::string> nested_names{"c0", "c1", "c2", "c3"}, drift_names{"c0", "c1", "c2"};

TEST_CASE("source/parquet: chat messages, a list of structs, become texts") {
  const penstock_test::temp_dir dir;
  std::filesystem::copy_file(report("messages.parquet"), dir / "chats.parquet");
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(dir.path());
  const auto [texts, contents] = chats::read();
  std::filesystem::current_path(before);
  CHECK(texts == std::vector<std::string>{"<|user|>a\n<|assistant|>b\n", ""});
  CHECK(contents == std::vector<std::string>{"a\nb\n", ""});

  const auto rows = ps::parquet(report("messages.parquet"));
  // In a batch they are texts of any length.
  auto batches = (rows | ps::decode<field<"messages", arrow_value<std::vector<chats::message>>>> |
                  ps::map<"messages">(chats::chat_text()) | ps::batch(2, ps::ragged))
                     .open();
  for (const auto& batch : batches) CHECK(ps::get<"messages">(batch)[1].empty());
  CHECK(penstock_test::nested_rows(rows, {"messages"}) ==
        "[{role:\"75736572\",content:\"61\"},{role:\"617373697374616e74\",content:\"62\"}]\n[]\n");
}

TEST_CASE("source/parquet: lists with nulls and of bool") {
  const auto holed = ps::parquet(report("list_with_null.parquet"));
  auto run = (holed | ps::decode<field<"v", arrow_list<std::optional<std::int64_t>>>>).open();
  for (const auto& row : run)
    CHECK(ps::get<"v">(row) == std::vector<std::optional<std::int64_t>>{1, std::nullopt, 3});
  const auto error_of = [&](auto codec) -> std::string {
    try {
      auto failing = (holed | codec).open();
      for (auto&& row : failing) (void)row;
    } catch (const ps::error& e) {
      CHECK(e.code() == ps::errc::missing);
      return e.what();
    }
    return "none";
  };
  using numbers = arrow_value<std::span<const std::int64_t>>;
  for (const std::string& said : {error_of(ps::decode<field<"v", numbers>>),
                                  error_of(ps::decode<field<"v", ps::arrow_array<std::int64_t>>>)})
    CHECK_THAT(said, Catch::Contains("a value in a list of the column 'v' is null: read it with "
                                     "arrow_value<std::vector<std::optional<T>>>"));
  CHECK_THAT(error_of(ps::decode<field<"v", arrow_list<std::int64_t>>>),
             Catch::Contains("is null: read it as std::optional<T>") && Catch::Contains("in value 1 of 'v'"));

  const auto truths = ps::parquet(report("list_bool.parquet"));
  for (const auto& row : (truths | ps::decode<field<"v", arrow_list<bool>>>).open())
    CHECK(ps::get<"v">(row) == std::vector<bool>{true, false});
  using bools = arrow_value<std::span<const bool>>;
  for (const auto& batch : (truths | ps::decode<field<"v", bools>> | ps::batch(1, ps::ragged)).open()) {
    const auto& values = ps::get<"v">(batch)[0];
    REQUIRE(values.size() == 2);
    CHECK(values[0]);
    CHECK_FALSE(values[1]);
  }
}

TEST_CASE("source/parquet: lists, maps and structs of any depth, value for value as pyarrow has them") {
  const auto peer = penstock_test::format_peer::find("datasets");
  if (!peer) return;
  const penstock_test::temp_dir dir;
  peer->run("write nested_datasets", dir.path(), 0, seeds);
  for (int seed = 0; seed < seeds; ++seed) {
    INFO("seed " << seed);
    const std::string expected = penstock_test::peer_values(dir.path(), seed, ".expected");
    REQUIRE_FALSE(expected.empty());
    const std::string folder = (dir / std::to_string(seed)).string();
    for (const std::size_t workers : {0u, 2u}) {
      CHECK(penstock_test::first_difference(
                penstock_test::nested_rows(ps::parquet(folder), nested_names, workers), expected) == "");
      CHECK(penstock_test::first_difference(
                penstock_test::nested_rows(ps::arrow_ipc(folder), nested_names, workers), expected) == "");
    }
    CHECK(penstock_test::first_difference(
              penstock_test::nested_rows(ps::arrow_ipc(ps::file(folder + "/a.arrow")), nested_names),
              expected) == "");
  }
}

TEST_CASE("source/parquet: columns that differ from file to file, value for value as pyarrow wrote them") {
  const auto peer = penstock_test::format_peer::find("datasets");
  if (!peer) return;
  const penstock_test::temp_dir dir;
  peer->run("write drift_datasets", dir.path(), 0, seeds);
  for (int seed = 0; seed < seeds; ++seed) {
    INFO("seed " << seed);
    const std::string expected = penstock_test::peer_values(dir.path(), seed, ".expected");
    REQUIRE_FALSE(expected.empty());
    const std::string folder = (dir / std::to_string(seed)).string();
    for (const std::size_t workers : {0u, 2u})
      CHECK(penstock_test::first_difference(
                penstock_test::nested_rows(ps::parquet(folder), drift_names, workers, true), expected) == "");
    std::vector<std::string> files;
    for (int i = 0; std::filesystem::exists(folder + "/" + std::to_string(i) + ".arrow"); ++i)
      files.push_back(folder + "/" + std::to_string(i) + ".arrow");
    CHECK(penstock_test::first_difference(
              penstock_test::nested_rows(ps::arrow_ipc(files), drift_names, 2, true), expected) == "");
    CHECK(penstock_test::first_difference(
              penstock_test::nested_rows(ps::arrow_ipc(ps::file(files)), drift_names, 0, true), expected) ==
          "");
  }
}

}  // namespace parquet_nested_test
