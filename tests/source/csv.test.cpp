// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/csv.hpp>

#include <penstock/codec/arrow_value.hpp>
#include <penstock/codec/text.hpp>
#include <penstock/core/error.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/memory_files.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/arrow_text.hpp"
#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/temp_dir.hpp"

namespace ps = penstock;
using codec_test::caught;
using penstock_test::contains;

namespace {

ps::memory_files held(std::initializer_list<std::pair<std::string_view, std::string_view>> files) {
  ps::memory_files made;
  for (const auto& [name, text] : files) made.add(name, text);
  return made;
}
/// The types of the columns, and the rows.
template <class Source>
std::string shown(const Source& source) {
  std::string all;
  for (const auto& one : source.fields()) all += one.name + ":" + one.type + " ";
  const auto reader = source.connect();
  typename Source::reader::worker worker;
  for (std::uint64_t i = 0; i < source.size(); ++i)
    reader.evaluate({0, i}, worker, [&](const auto& row) {
      all += "|";
      for (std::size_t k = 0; k < row.size(); ++k) {
        const auto cell = row.member(k).cell();
        all += k == 0 ? "" : ",";
        if (cell.type().format == "u" && !cell.is_null())
          all += ps::text_of(cell.bytes());
        else
          penstock_test::add_cell(all, cell);
      }
    });
  return all;
}
codec_test::thrown refusal(std::string_view text, ps::csv_options options = {}) {
  return caught([&] { static_cast<void>(ps::csv(held({{"a.csv", text}}), std::move(options))); });
}

}  // namespace

TEST_CASE("source/csv: columns have names and types, and values may be missing") {
  CHECK(shown(ps::csv(
            held({{"a.csv", "id,text,score,day\n1,a b,0.5,2024-02-29\r\n\n2,\"x, \"\"y\"\"\nz\",,\n"}}))) ==
        "id:int64 text:string score:double day:date32[day] |1,a b,3fe0000000000000,19782|2,x, "
        "\"y\"\nz,null,null");
  // Without a line of names, with other marks, and a byte order mark.
  CHECK(shown(ps::csv(held({{"a.csv", "\xef\xbb\xbf'1;2';x\n3;y"}}),
                      {.delimiter = ';', .quote = '\'', .columns = {"a", "b"}})) ==
        "a:string b:string |1;2,x|3,y");
  CHECK(shown(ps::tsv(held({{"a.tsv", "a\tb\n1\t\"t\"\n"}}))) == "a:int64 b:string |1,t");
  CHECK(shown(ps::csv(held({{"a.csv", "a,b\n07,1\n"}}), {.types = {{"a", "string"}, {"b", "float"}}})) ==
        "a:string b:float |07,3ff0000000000000");
  CHECK(shown(ps::csv(held({{"a.csv", "a,b\n-,1\nx,-\nNA,3\n"}}), {.nulls = {"-"}})) ==
        "a:string b:int64 |null,1|x,null|NA,3");
  CHECK(shown(ps::csv(held({{"a.csv", "a,b\nNA,NA\n,1\nx,\n"}}))) == "a:string b:int64 |NA,null|,1|x,null");
  CHECK(shown(ps::csv(held({{"a.csv", "a\nx\\\"y\n"}}), {.escape = '\\'})) == "a:string |x\"y");
}

TEST_CASE("source/csv: files are one dataset if their columns are, and their types what all values are") {
  CHECK(shown(ps::csv(
            held({{"a.csv", "a,b,c\n1,1,\n"}, {"b.csv", "b,a,c\nx,0.5,\n"}, {"c.csv", "a,b,c\n"}}))) ==
        "a:double b:string c:null |3ff0000000000000,1,null|3fe0000000000000,x,null");
  const auto other = caught([&] {
    static_cast<void>(ps::csv(held({{"a.csv", "a,b\n1,2\n"}, {"b.csv", "a,c\n1,2\n"}})));
  });
  CHECK(other.code == ps::errc::format);
  CHECK_THAT(other.line, contains("b.csv") && contains("the columns a, c") && contains("'a.csv', has a, b"));
  CHECK(ps::csv(held({{"a.csv", "a\n1\n"}})).fingerprint() !=
        ps::csv(held({{"a.csv", "a\n2\n"}})).fingerprint());
}

TEST_CASE("source/csv: rows in any order, over several pieces, with the columns that are asked for") {
  std::string all = "id,text,other\n";
  constexpr std::int64_t count = 30'000;
  for (std::int64_t i = 0; i < count; ++i)
    all += std::to_string(i) + ",\"line\n" + std::to_string(i * 7) +
           std::string(static_cast<std::size_t>(i % 90), 'x') + "\"," + (i == count - 1 ? "word" : "1") +
           "\n";
  const auto source = ps::csv(held({{"big.csv", all}}));
  CHECK(source.size() == count);
  CHECK(source.manifest().shards().size() > 1);
  CHECK(source.fields()[2].type == "string");  // one value of the last piece is a word
  using id = ps::field<"id", ps::arrow_value<std::int64_t>>;
  std::vector<std::int64_t> seen;
  for (const auto& row : (source | ps::shuffle(ps::seed(3), ps::window(2)) |
                          ps::decode<id, ps::field<"text", ps::arrow_value<std::string>>> | ps::workers(2))
                             .epoch(0)) {
    const std::int64_t i = ps::get<"id">(row);
    CHECK(ps::get<"text">(row).starts_with("line\n" + std::to_string(i * 7)));
    seen.push_back(i);
  }
  std::ranges::sort(seen);
  REQUIRE(seen.size() == count);
  CHECK(seen.front() == 0);
  CHECK(std::ranges::adjacent_find(seen, std::greater_equal<>()) == seen.end());
}

TEST_CASE("source/csv: folders and splits") {
  const penstock_test::temp_dir dir;
  const auto write = [&](const char* name, std::string_view text) {
    std::ofstream(dir.path() / name, std::ios::binary) << text;
  };
  write("train.csv", "a\n1\n");
  CHECK(ps::csv(dir.path().string()).size() == 1);
  write("test.csv", "a\n2\n3\n");
  CHECK(caught([&] { static_cast<void>(ps::csv(dir.path().string())); }).code == ps::errc::argument);
  CHECK(ps::csv(dir.path().string(), ps::split("test")).size() == 2);
  CHECK(ps::csv((dir.path() / "t*.csv").string(), {.types = {{"a", "int32"}}}).size() == 3);
  CHECK(caught([&] { static_cast<void>(ps::tsv(dir.path().string())); }).code == ps::errc::missing);
}

TEST_CASE("source/csv: faults are one sentence with the place") {
  CHECK_THAT(refusal("a,b\n1,2\n3\n").line, contains("a.csv") && contains("Expected 2 columns, got 1"));
  const auto open = refusal("a,b\n1,\"2\n");
  CHECK(open.code == ps::errc::format);
  CHECK_THAT(open.line, contains("a quote that nothing closes"));
  CHECK_THAT(refusal("a,a\n1,2\n").line, contains("two columns are called 'a'"));
  CHECK_THAT(refusal("").line, contains("the file is empty"));
  CHECK_THAT(refusal("\n\n").line, contains("the file is empty"));
  CHECK_THAT(refusal("a\n1\n", {.types = {{"b", "int64"}}}).line,
             contains("column 'b', and there are only a"));
  CHECK_THAT(refusal("a\n1\n", {.types = {{"a", "integer"}}}).line,
             contains("'integer'; there are bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, "
                      "float, double, string, binary, date32, timestamp[s], timestamp[ms], timestamp[us], "
                      "timestamp[ns]"));
  for (const char* not_documented : {"large_binary", "date32[day]"})
    CHECK_THAT(refusal("a\n1\n", {.types = {{"a", not_documented}}}).line, contains("cannot be of the type"));
  const auto source = ps::csv(held({{"a.csv", "a\nx\n"}}), {.types = {{"a", "int64"}}});
  const auto late = caught([&] { static_cast<void>(shown(source)); });
  CHECK(late.code == ps::errc::format);
  CHECK_THAT(late.line, contains("a.csv"));
}

TEST_CASE("source/csv: the example in the header") {
  const penstock_test::temp_dir dir;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(dir.path());
  std::filesystem::create_directory("reviews");
  std::ofstream("reviews/train-0.csv") << "text,label\ngood,1\n";
  std::ofstream("pairs.csv") << "a;b\n";
  {
    using namespace penstock;
    auto rows = csv("reviews/train-*.csv", {.types = {{"label", "int32"}}}) | shuffle(seed(7)) |
                decode<field<"text", text>, field<"label", arrow_value<std::int32_t>>>;
    auto pairs = csv("pairs.csv", {.delimiter = ';', .columns = {"source", "target"}});
    for (const auto& row : rows.epoch(0)) {
      CHECK(std::string_view(get<"text">(row)) == "good");
      CHECK(get<"label">(row) == 1);
    }
    CHECK(shown(pairs) == "source:string target:string |a,b");
  }
  std::filesystem::current_path(before);
}
