// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/parquet.hpp>

#include <penstock/codec/arrow_value.hpp>
#include <penstock/codec/identity.hpp>
#include <penstock/codec/text.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/parquet_writer.hpp>
#include <penstock/source/where.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/workers.hpp>

#include "support/arrow_text.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "support/format_peers.hpp"
#include "support/temp_dir.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ps = penstock;

namespace parquet_drift_test {

bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

template <class Call>
std::string error_of(const Call& call) {
  try {
    (void)call();
  } catch (const ps::error& e) {
    return e.what();
  }
  return "none";
}

std::string report(std::string_view name) {
  return penstock_test::fixture("reports/" + std::string(name)).string();
}

/// A column of a source, separated by spaces; none for null.
template <ps::fixed_string Name, class T>
std::string column(const ps::parquet_source<ps::mapped_file>& rows) {
  std::string all;
  auto run = (rows | ps::decode<ps::field<Name, ps::arrow_value<std::optional<T>>>>).open();
  for (const auto& row : run) {
    const auto& value = ps::get<Name>(row);
    if (!all.empty()) all += ' ';
    if (!value)
      all += "none";
    else if constexpr (std::is_arithmetic_v<T>)
      all += std::to_string(*value);
    else
      all += *value;
  }
  return all;
}

/// A file of one column with some values.
template <class T>
void write(const std::filesystem::path& path, const char* type, std::initializer_list<T> values,
           const char* name = "x") {
  std::filesystem::create_directories(path.parent_path());
  ps::parquet_writer out(path.string(), {{name, type}});
  for (const T& one : values) out.write({{name, one}});
  out.close();
}

TEST_CASE("source/parquet: a column that some files lack, or have without a type, is null there") {
  for (const char* const folder : {"drift_extra", "drift_null"}) {
    INFO(folder);
    const auto rows = ps::parquet(report(folder));
    CHECK(column<"id", std::int64_t>(rows) == "1 2");
    CHECK(column<"x", std::string>(rows) == "none b");
    CHECK(penstock_test::arrow_rows_text(rows) == "id\tx\n1\tnull\n2\t\"62\"\n");
    CHECK(rows.schema().text() == "struct<id: int64, x: string>");
    const std::string null = error_of([&] {
      auto run = (rows | ps::decode<ps::field<"x", ps::text>>).open();
      for (auto&& row : run) (void)row;
      return 0;
    });
    CHECK(contains(null, "the value of the column 'x' is null"));
    CHECK(contains(null, "a.parquet:0"));
  }
}

TEST_CASE("source/parquet: a text in any encoding is one, and numbers widen") {
  const auto texts = ps::parquet(report("drift_string"));
  CHECK(column<"s", std::string>(texts) == "a b c");
  CHECK(penstock_test::arrow_rows_text(texts, 2) == "s\n\"61\"\n\"62\"\n\"63\"\n");
  CHECK(texts.schema().text() == "struct<s: large_string>");
  const auto chosen = texts | ps::where<"s">(ps::one_of({"a", "c"}));
  CHECK(column<"s", std::string>(chosen) == "a c");

  const auto numbers = ps::parquet(report("drift_int"));
  CHECK(column<"v", std::int64_t>(numbers) == "1 2");
  CHECK(numbers.schema().text() == "struct<v: int64>");
  CHECK(column<"v", std::int64_t>(numbers | ps::where<"v">(ps::less_than(2))) == "1");
}

TEST_CASE(
    "source/parquet: times become those of the finer unit, and floating-point numbers of the wider type") {
  const penstock_test::temp_dir dir;
  write<std::int64_t>(dir / "t/a.parquet", "timestamp[ms]", {1, -2, 3});
  write<std::int64_t>(dir / "t/b.parquet", "timestamp[us]", {4});
  write<std::int64_t>(dir / "t/c.parquet", "date32[day]", {1});
  const auto times = ps::parquet((dir / "t").string());
  CHECK(column<"x", std::int64_t>(times) == "1000 -2000 3000 4 86400000000");
  // Statistics count in each file's own unit.
  CHECK(column<"x", std::int64_t>(times | ps::where<"x">(ps::between(5, 3000))) == "1000 3000");
  write<std::int64_t>(dir / "t/d.parquet", "timestamp[ns]", {5});
  write<std::int64_t>(dir / "t/e.parquet", "timestamp[ms]", {std::int64_t{1} << 50});
  const auto wrapped = ps::parquet((dir / "t").string());
  CHECK(contains(error_of([&] { return column<"x", std::int64_t>(wrapped); }),
                 "the column 'x' has a value of 1125899906842624 of type timestamp[ms], which is out of the "
                 "range of timestamp[ns], the type that it has in other files"));

  write<float>(dir / "f/a.parquet", "float", {0.5f});
  write<double>(dir / "f/b.parquet", "double", {0.25});
  write<int>(dir / "f/c.parquet", "int32", {3});
  const auto real = ps::parquet((dir / "f").string());
  CHECK(column<"x", double>(real) == "0.500000 0.250000 3.000000");
  CHECK(column<"x", double>(real | ps::where<"x">(ps::greater_than(0.3))) == "0.500000 3.000000");
  // The numbers of a batch lie one behind the other.
  auto run = (real | ps::decode<ps::field<"x", ps::arrow_value<double>>> | ps::batch(3)).open();
  for (const auto& batch : run)
    CHECK(std::vector(ps::get<"x">(batch).begin(), ps::get<"x">(batch).end()) ==
          std::vector<double>{0.5, 0.25, 3});

  write<std::vector<std::int32_t>>(dir / "l/a.parquet", "list<int32>", {{1, 2}, {}});
  write<std::vector<std::int64_t>>(dir / "l/b.parquet", "list<int64>", {{std::int64_t{1} << 40}});
  write<std::vector<std::int64_t>>(dir / "l/c.parquet", "fixed_size_list<int64>[2]", {{7, 8}});
  std::string lists;
  auto ragged = (ps::parquet((dir / "l").string()) |
                 ps::decode<ps::field<"x", ps::arrow_value<std::span<const std::int64_t>>>> | ps::workers(2))
                    .open();
  for (const auto& row : ragged) {
    for (const std::int64_t one : ps::get<"x">(row)) lists += std::to_string(one) + " ";
    lists += "; ";
  }
  CHECK(lists == "1 2 ; ; 1099511627776 ; 7 8 ; ");
}

TEST_CASE("source/parquet: types without a common one are an error of who asks for the column") {
  const penstock_test::temp_dir dir;
  const auto file = [&](const char* name, const char* type, auto value) {
    ps::parquet_writer out((dir / name).string(), {{"id", "int64"}, {"x", type}});
    out.write({{"id", 7}, {"x", value}});
    out.close();
  };
  file("a.parquet", "int64", 1);
  file("b.parquet", "int64", 1);
  file("c.parquet", "double", 0.5);
  const auto rows = ps::parquet(dir.path().string());
  CHECK(column<"id", std::int64_t>(rows) == "7 7 7");
  const auto refused = [&](const std::string& said) {
    return contains(said, "the column 'x' is of type double in the file, and of type int64 in '") &&
           contains(said, "a.parquet', and no type holds the values of both without loss") &&
           contains(said, "c.parquet]");
  };
  CHECK(refused(error_of([&] { return column<"x", double>(rows); })));
  CHECK(refused(error_of([&] { return rows | ps::where<"x">(ps::equals(1)); })));
  CHECK(refused(error_of([&] { return penstock_test::arrow_rows_text(rows); })));
  CHECK(column<"id", std::int64_t>(rows | ps::columns<"id">) == "7 7 7");
  CHECK(column<"id", std::int64_t>(rows | ps::where<"id">(ps::equals(7))) == "7 7 7");
}

TEST_CASE(
    "source/parquet: a column that is in a file and in the name of its folder is one if both are equal") {
  const auto rows = ps::parquet(report("hive_twice"));
  CHECK(column<"date", std::string>(rows) == "2024-01-01");
  CHECK(column<"id", std::int64_t>(rows) == "1");
  CHECK(rows.fields().size() == 2);
  CHECK(column<"id", std::int64_t>(rows | ps::where<"date">(ps::equals("2024-01-01"))) == "1");

  const penstock_test::temp_dir dir;
  write<int>(dir / "n/x=01/a.parquet", "int32", {1, 1});
  write<int>(dir / "n/x=2/a.parquet", "int64", {2});
  ps::parquet_writer lacks((dir / "n/x=2/b.parquet").string(), {{"id", "int64"}});
  lacks.write({{"id", 7}});
  lacks.close();
  const auto numbers = ps::parquet((dir / "n").string());
  CHECK(column<"x", std::int64_t>(numbers) == "1 1 2 2");
  CHECK(column<"id", std::int64_t>(numbers) == "none none none 7");

  write<int>(dir / "d/x=2024-02-29/a.parquet", "date32[day]", {19782});
  CHECK(column<"x", std::int64_t>(ps::parquet((dir / "d").string())) == "19782");

  write<int>(dir / "n/x=2/c.parquet", "int32", {2, 3});
  const auto differs = ps::parquet((dir / "n").string());
  const std::string said = error_of([&] { return column<"x", std::int64_t>(differs); });
  CHECK(contains(said, "the column 'x' is 3 in a row of the file, and 2 by the name of its folder"));
  CHECK(contains(said, "x=2/c.parquet"));
  CHECK(contains(error_of([&] { return differs | ps::where<"x">(ps::equals(2)); }),
                 "the column 'x' is 3 in a row of the file, and 2 by the name of its folder"));
  write<float>(dir / "f/x=0.1/a.parquet", "float", {0.1F});
  CHECK(column<"x", float>(ps::parquet((dir / "f").string())).starts_with("0.1"));
  write<double>(dir / "g/x=0.5/a.parquet", "double", {std::numeric_limits<double>::quiet_NaN()});
  CHECK(contains(error_of([&] { return column<"x", double>(ps::parquet((dir / "g").string())); }),
                 "nan in a row of the file, and 0.5 by the name of its folder"));
  write<bool>(dir / "h/x=True/a.parquet", "bool", {true});
  CHECK(error_of([&] { return column<"x", bool>(ps::parquet((dir / "h").string())); }) == "none");
  CHECK(column<"id", std::int64_t>(differs) == "none none none 7 none none");
  write<int>(dir / "d/x=2024-03-01/a.parquet", "date32[day]", {19782});
  CHECK(contains(
      error_of([&] { return column<"x", std::int64_t>(ps::parquet((dir / "d").string())); }),
      "the column 'x' is 2024-02-29 in a row of the file, and 2024-03-01 by the name of its folder"));
  write<std::vector<int>>(dir / "e/x=1/a.parquet", "list<int32>", {{1}});
  CHECK(contains(error_of([&] { return ps::parquet((dir / "e").string()); }),
                 "the column 'x' is in the names of folders and in files, too, there of type list<int32>"));
}

}  // namespace parquet_drift_test
