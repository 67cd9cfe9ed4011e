// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/delta.hpp>
#include <penstock/source/iceberg.hpp>

#include <penstock/core/error.hpp>
#include <penstock/source/tables/hive_path.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/arrow_text.hpp"
#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/external_program.hpp"
#include "support/fixtures.hpp"
#include "support/temp_dir.hpp"

namespace ps = penstock;
using codec_test::caught;
using penstock_test::contains;

namespace {

/// The rows without a run, in their order: the cells of each with tabs between them.
template <class Source>
std::vector<std::string> rows_of(const Source& source) {
  std::vector<std::string> made;
  const auto reader = source.connect();
  typename Source::reader::worker worker;
  for (std::uint64_t i = 0; i < source.size(); ++i)
    reader.evaluate({0, i}, worker,
                    [&](const auto& row) { made.push_back(penstock_test::arrow_row_text(row)); });
  std::ranges::sort(made);
  return made;
}
using texts = std::vector<std::string>;

std::string report_path(std::string_view name) {
  return penstock_test::fixture("reports/" + std::string(name)).string();
}

/// A table of Delta with one file, whose only column is `id`, 3, and a partition.
class delta_table {
 public:
  delta_table(const std::string& type, const std::string& value,
              const std::string& protocol = R"("minReaderVersion":1)") {
    std::filesystem::create_directories(dir_.path() / "_delta_log");
    std::filesystem::copy(report_path("removed_file/part-1.parquet"), dir_.path() / "a.parquet");
    std::ofstream(dir_.path() / "_delta_log/00000000000000000000.json")
        << R"({"protocol":{)" << protocol << R"(,"minWriterVersion":2}})"
        << "\n"
        << R"({"metaData":{"id":"a","format":{"provider":"parquet"},)"
        << R"("schemaString":"{\"type\":\"struct\",\"fields\":[)"
        << R"({\"name\":\"id\",\"type\":\"long\",\"nullable\":true,\"metadata\":{}},)"
        << R"({\"name\":\"p\",\"type\":)" << type
        << R"(,\"nullable\":true,\"metadata\":{}}]}","partitionColumns":[)" << (value.empty() ? "" : "\"p\"")
        << R"(],"configuration":{"delta.enableDeletionVectors":"true"}}})"
        << "\n"
        << R"({"add":{"path":"a.parquet","partitionValues":{)" << (value.empty() ? "" : "\"p\":" + value)
        << R"(},"size":486,"modificationTime":0,"dataChange":true}})";
  }
  [[nodiscard]] auto open() const { return ps::delta(dir_.path().string()); }

 private:
  penstock_test::temp_dir dir_;
};

std::string partition_of(const std::string& type, const std::string& value) {
  const delta_table table(R"(\")" + type + R"(\")", value);
  const texts rows = rows_of(table.open());
  REQUIRE(rows.size() == 1);
  return rows.front().substr(rows.front().find('\t') + 1);
}

}  // namespace

TEST_CASE("source/table_types: a partition's value has the type of its column") {
  const auto decimals = ps::delta(report_path("delta_decimal_partition"));
  CHECK(decimals.fields()[1].type == "decimal128(12,2)");
  CHECK(rows_of(decimals) ==
        texts{"1\tx00000000000000000000000000000000", "2\tx7d000000000000000000000000000000"});

  // What delta-rs writes, and Spark.
  CHECK(partition_of("boolean", R"("true")") == "true");
  CHECK(partition_of("byte", R"("-128")") == "-128");
  CHECK(partition_of("short", R"("32767")") == "32767");
  CHECK(partition_of("integer", R"("-2147483648")") == "-2147483648");
  CHECK(partition_of("long", R"("9223372036854775807")") == "9223372036854775807");
  CHECK(partition_of("float", R"("-0.1")") == "bfb99999a0000000");
  CHECK(partition_of("double", R"("1.0E10")") == "4202a05f20000000");
  CHECK(partition_of("double", R"("-Infinity")") == "fff0000000000000");
  CHECK(partition_of("double", R"("NaN")") == "nan");
  CHECK(partition_of("decimal(4,2)", R"("-0.5")") == "xceffffffffffffffffffffffffffffff");
  CHECK(partition_of("decimal(38,18)", R"("0E-18")") == "x00000000000000000000000000000000");
  CHECK(partition_of("decimal(20,0)", R"("1E+3")") == "xe8030000000000000000000000000000");
  CHECK(partition_of("date", R"("1969-12-31")") == "-1");
  CHECK(partition_of("timestamp", R"("1970-01-01 00:00:01.5")") == "1500000");
  CHECK(partition_of("timestamp_ntz", R"("1969-12-31T23:59:59.999999")") == "-1");
  CHECK(partition_of("string", R"("\\u0041")") == "\"5c7530303431\"");
  CHECK(partition_of("binary", R"("\\u0001\\u00FF")") == "\"01ff\"");
  CHECK(partition_of("binary", R"("\u0001a")") == "\"0161\"");
  for (const char* const type :
       {"boolean", "byte", "float", "decimal(4,2)", "date", "timestamp", "string", "binary"}) {
    CHECK(partition_of(type, "null") == "null");
    CHECK(partition_of(type, R"("")") == "null");
  }
  const std::pair<std::string, std::string> wrong[] = {
      {"byte", R"("128")"},  {"decimal(4,2)", R"("1.005")"}, {"decimal(4,2)", R"("100")"},
      {"float", R"("x")"},   {"decimal(4,2)", R"("0.-5")"},  {"decimal(4,2)", R"("1e")"},
      {"boolean", R"("1")"}, {"short", R"("1.5")"}};
  for (const auto& [type, value] : wrong) {
    CAPTURE(type, value);
    const delta_table table(R"(\")" + type + R"(\")", value);
    const auto refused = caught([&] { static_cast<void>(table.open()); });
    CHECK(refused.code == ps::errc::format);
    CHECK_THAT(refused.line, contains("the column 'p'"));
  }
}

TEST_CASE("source/table_types: decimals of other widths, and the largest") {
  const auto bytes = [](const std::string& format, const std::string& text) {
    ps::arrow_type type = ps::arrow_type::of_format(format);
    std::vector<ps::arrow_type> types{type};
    const ps::detail::hive_columns made(std::move(types), {{text}});
    const std::byte zero{};
    const ps::arrow_column column = made.column(0, 0, 1, &zero);
    std::string line;
    penstock_test::add_cell(line, {column, 0});
    return line;
  };
  CHECK(bytes("d:9,2,32", "-1.25") == "x83ffffff");
  CHECK(bytes("d:18,0,64", "256") == "x0001000000000000");
  CHECK(bytes("d:76,0,256", "-1") == "x" + std::string(64, 'f'));
  CHECK(bytes("d:38,0", std::string(38, '9')) == "xffffffff3f228a097ac4865aa84c3b4b");
}

TEST_CASE("source/table_types: a date in a path is four digits, two and two; Delta takes other years, too") {
  using ps::detail::days_of_date;
  CHECK(days_of_date("1970-01-01") == 0);
  CHECK(days_of_date("2024-1-31") == 19753);
  CHECK(days_of_date("12024-01-31").has_value());
  for (const char* const none : {"", "+2024-01-31", "2024/01/31", "2024-02-30", "2024-13-01", "2024-01-31 "})
    CHECK(days_of_date(none) == std::nullopt);
  const auto in_path = [](const char* text) {
    ps::detail::hive_columns({ps::arrow_type::of_format("tdD")}, {{text}});
  };
  in_path("2024-01-31");
  for (const char* const none : {"-024-01-31", "12024-01-31", "2024-1-031", "2024-01-3", "2024-01-311"})
    CHECK(caught([&] { in_path(none); }).code == ps::errc::format);
}

TEST_CASE("source/table_types: lists of fixed length, columns of nulls, and features that no column needs") {
  CHECK(rows_of(ps::delta(report_path("delta_embedding"))) ==
        texts{"1\t[3ff0000000000000,4000000000000000]", "2\t[4008000000000000,4010000000000000]"});
  const auto nulls = ps::delta(report_path("delta_void"));
  CHECK(nulls.fields()[1].type == "null");
  CHECK(rows_of(nulls) == texts{"1\tnull"});
  CHECK(rows_of(delta_table(R"(\"void\")", "").open()) == texts{"3\tnull"});

  const std::string features = R"("minReaderVersion":3,"readerFeatures":["deletionVectors","variantType",)"
                               R"("variantShredding-preview"])";
  CHECK(rows_of(delta_table(R"(\"integer\")", R"("7")", features).open()) == texts{"3\t7"});
  for (const char* const type :
       {R"(\"variant\")", R"({\"type\":\"array\",\"elementType\":\"variant\",\"containsNull\":true})",
        R"({\"type\":\"struct\",\"fields\":[{\"name\":\"v\",\"type\":\"variant\",)"
        R"(\"nullable\":true,\"metadata\":{}}]})"}) {
    const delta_table table(type, "", features);
    const auto refused = caught([&] { static_cast<void>(table.open()); });
    CHECK(refused.code == ps::errc::argument);
    CHECK_THAT(refused.line, contains("variantType"));
  }
}

TEST_CASE("source/table_types: partitions of every type, as delta-rs and pyiceberg write and read them") {
  const char* const named = std::getenv("PENSTOCK_TEST_ARROW");
  const std::string probe = "-c 'import deltalake, pyiceberg.catalog.sql'";
  const std::string python = named != nullptr && *named != '\0' ? named : penstock_test::python_for(probe);
  if (!penstock_test::have_program("deltalake and pyiceberg", python + " " + probe)) return;
  const char* const support = std::getenv("PENSTOCK_TEST_SUPPORT");
  REQUIRE(support != nullptr);
  const penstock_test::temp_dir dir;
  const auto written = penstock_test::run_program(python + " -B -W ignore " + std::string(support) +
                                                  "/table_peers.py " + dir.path().string());
  INFO(written.output);
  REQUIRE(written.status == 0);
  std::map<std::pair<std::string, std::string>, texts> expected;
  std::istringstream lines(written.output);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream parts(line);
    std::string format, folder, row;
    REQUIRE(
        (std::getline(parts, format, '\t') && std::getline(parts, folder, '\t') && std::getline(parts, row)));
    expected[{format, folder}].push_back(row);
  }
  CHECK(expected.size() == 26);
  for (const auto& [table, rows] : expected) {
    CAPTURE(table.second);
    CHECK(rows_of(table.first == "delta" ? ps::delta(table.second) : ps::iceberg(table.second)) == rows);
  }
}
