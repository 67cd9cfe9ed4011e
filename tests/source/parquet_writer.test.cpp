// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/parquet_writer.hpp>

#include <penstock/codec/arrow_value.hpp>
#include <penstock/core/error.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/parquet.hpp>
#include <penstock/stage/decode.hpp>

#include "support/catch.hpp"
#include "support/external_program.hpp"
#include "support/temp_dir.hpp"

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace ps = penstock;

TEST_CASE("source/parquet_writer: what is written is read, by us and by pyarrow") {
  const penstock_test::temp_dir dir;
  const std::string path = (dir / "x.parquet").string();
  {
    ps::parquet_writer out(path,
                           {{"b", "bool"},
                            {"i", "int8"},
                            {"u", "uint64"},
                            {"f", "float"},
                            {"s", "string"},
                            {"raw", "binary"},
                            {"day", "date32[day]"},
                            {"when", "timestamp[us]"},
                            {"l", "list<int32>"},
                            {"v", "fixed_size_list<double>[2]"}},
                           {.group_rows = 2, .bloom = {"s"}});
    const std::vector<std::int64_t> numbers{1, 2, 3};
    const std::vector<float> pair{0.5f, -1};
    out.write({{"b", true},
               {"i", -5},
               {"u", std::numeric_limits<std::uint64_t>::max()},
               {"f", 0.5},
               {"s", "text"},
               {"raw", ps::bytes_of("\1\2")},
               {"day", 3},
               {"when", std::int64_t{1} << 50},
               {"l", numbers},
               {"v", pair}});
    out.write({{"i", std::nullopt}, {"l", std::vector<std::int64_t>{}}});
    CHECK_FALSE(std::filesystem::exists(path));  // until it is complete
    out.write({{"s", std::string("third")}});
    out.close();
    CHECK_THROWS_WITH(out.write({{"s", "late"}}), Catch::Contains("the file is closed"));
  }
  const auto rows = ps::parquet(path);
  CHECK(rows.size() == 3);
  CHECK(*rows.starts() == std::vector<std::uint64_t>{0, 2, 3});
  CHECK((rows | ps::where<"s">(ps::equals("third"))).size() == 1);
  auto run = (rows | ps::decode<ps::field<"i", ps::arrow_value<std::optional<std::int8_t>>>,
                                ps::field<"u", ps::arrow_value<std::uint64_t, 0>>,
                                ps::field<"when", ps::arrow_value<std::int64_t, 7>>>)
                 .open();
  std::size_t count = 0;
  for (auto&& row : run) {
    CHECK(ps::get<"i">(row) == (count == 0 ? std::optional<std::int8_t>(-5) : std::nullopt));
    CHECK(ps::get<"when">(row) == (count++ == 0 ? std::int64_t{1} << 50 : 7));
  }
  CHECK(count == 3);

  const char* const python = std::getenv("PENSTOCK_TEST_ARROW");
  if (python == nullptr || *python == '\0') {
    WARN("PENSTOCK_TEST_ARROW names no Python that has pyarrow");
    return;
  }
  const auto read = penstock_test::run_program(
      std::string(python) +
      " -c 'import sys, pyarrow.parquet as pq; t = pq.read_table(sys.argv[1]); print(t.to_pylist()[0]); "
      "print(t.to_pylist()[1][\"l\"], t.schema.field(\"v\").type)' " +
      path);
  INFO(read.output);
  CHECK(read.status == 0);
  CHECK(
      read.output ==
      "{'b': True, 'i': -5, 'u': 18446744073709551615, 'f': 0.5, 's': 'text', 'raw': b'\\x01\\x02', 'day': "
      "datetime.date(1970, 1, 4), 'when': datetime.datetime(2005, 9, 5, 5, 58, 26, 842624), 'l': [1, 2, 3], "
      "'v': [0.5, -1.0]}\n[] fixed_size_list<element: double>[2]\n");
}

TEST_CASE("source/parquet_writer: faults are one sentence, and leave no file") {
  const penstock_test::temp_dir dir;
  const std::string path = (dir / "x.parquet").string();
  const auto refuses = [&](std::string_view type, ps::parquet_value value, const char* why) {
    ps::parquet_writer out(path, {{"x", std::string(type)}});
    CHECK_THROWS_WITH(out.write({{"x", value}}), Catch::Contains(why));
  };
  const std::vector<int> three{1, 2, 3};
  refuses("int8", 128, "the value for the column 'x' is none of its type, int8");
  refuses("uint8", -1, "none of its type, uint8");
  refuses("int64", 1.5, "none of its type, int64");
  refuses("int64", "1", "none of its type, int64");
  refuses("string", 1, "none of its type, string");
  refuses("bool", 1, "none of its type, bool");
  refuses("fixed_size_list<float>[2]", three, "none of its type");
  refuses("list<uint8>", std::vector<int>{256}, "none of its type");
  using columns = std::vector<std::pair<std::string, std::string>>;
  const auto none = [&](const columns& given, ps::parquet_writer_options options, const char* why) {
    CHECK_THROWS_WITH(ps::parquet_writer(path, given, std::move(options)), Catch::Contains(why));
  };
  none({}, {}, "at least one column");
  none({{"x", "number"}}, {}, "'number' is no type that parquet_writer knows");
  none({{"x", "number"}}, {},
       "there are bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float, double, string, "
       "binary, large_binary, date32[day], timestamp[ms], timestamp[us], timestamp[ns], and lists of these");
  none({{"x", "timestamp[s]"}}, {}, "'timestamp[s]' is no type that parquet_writer knows");
  none({{"x", "list<timestamp[s]>"}}, {}, "'timestamp[s]' is no type that parquet_writer knows");
  none({{"x", "date32"}}, {}, "'date32' is no type that parquet_writer knows");
  none({{"x", "list<list<int8>>"}}, {}, "is no type that parquet_writer knows");
  none({{"x", "fixed_size_list<int8>[0]"}}, {}, "is no type that parquet_writer knows");
  none({{"x", "int8"}, {"x", "int8"}}, {}, "two columns are called 'x'");
  none({{"x", "int8"}}, {.compression = "best"}, "without the compression 'best'");
  none({{"x", "int8"}}, {.bloom = {"y"}}, "there is no column 'y' for a Bloom filter");
  none({{"x", "int8"}}, {.group_rows = 0}, "at least one row");
  ps::parquet_writer out(path, {{"x", "int8"}});
  CHECK_THROWS_WITH(out.write({{"y", 1}}), Catch::Contains("there is no column 'y'"));
  CHECK_THROWS_WITH(out.write({{"x", 1}, {"x", 2}}), Catch::Contains("the column 'x' is given twice"));
  CHECK_FALSE(std::filesystem::exists(path));
  CHECK_THROWS_WITH(ps::parquet_writer("/nowhere/x.parquet", {{"x", "int8"}}),
                    Catch::Contains("/nowhere/x.parquet"));
}
