// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/delta.hpp>

#include <penstock/codec/arrow_value.hpp>
#include <penstock/core/arrow_column.hpp>
#include <penstock/core/arrow_type.hpp>
#include <penstock/core/random.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/dataset.hpp>
#include <penstock/source/parquet_writer.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/retrying.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include "support/arrow_text.hpp"
#include "support/catch.hpp"
#include "support/external_program.hpp"
#include "support/members.hpp"
#include "support/stored_folder.hpp"
#include "support/temp_dir.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace ps = penstock;

namespace delta_test {

std::string number_text(double value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

/// The rows as tools/delta_oracles.py writes them, but with shorter numbers.
template <class Source>
std::string rows_of(const Source& source, bool amounts) {
  std::vector<std::tuple<std::int64_t, double, std::string>> rows;
  const auto add = [&](auto&& row, double amount, bool has_amount) {
    const auto& name = ps::get<"name">(row);
    const auto& region = ps::get<"region">(row);
    rows.emplace_back(ps::get<"id">(row), has_amount ? amount : -1,
                      std::to_string(ps::get<"id">(row)) + "\t" + name.value_or("") + "\t" +
                          (has_amount ? number_text(amount) : "") + "\t" +
                          std::to_string(ps::get<"day">(row)) + "\t" + region.value_or("") + "\n");
  };
  using id = ps::field<"id", ps::arrow_value<std::int64_t>>;
  using name = ps::field<"name", ps::arrow_value<std::optional<std::string>>>;
  using day = ps::field<"day", ps::arrow_value<std::int32_t>>;
  using region = ps::field<"region", ps::arrow_value<std::optional<std::string>>>;
  if (amounts) {
    using amount = ps::field<"amount", ps::arrow_value<std::optional<double>>>;
    for (auto&& row :
         (source | ps::shuffle(ps::seed(1)) | ps::decode<id, name, day, region, amount> | ps::workers(2))
             .epoch(0))
      add(row, ps::get<"amount">(row).value_or(0), ps::get<"amount">(row).has_value());
  } else {
    for (auto&& row :
         (source | ps::shuffle(ps::seed(1)) | ps::decode<id, name, day, region> | ps::workers(2)).epoch(0))
      add(row, 0, false);
  }
  std::ranges::sort(rows);
  std::string all;
  for (const auto& [number, amount, line] : rows) all += line;
  return all;
}

/// What Python wrote, with numbers as above.
std::string normal(const std::string& text) {
  std::string all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream parts(line);
    std::vector<std::string> row(5);
    for (std::string& one : row) std::getline(parts, one, '\t');
    if (!row[2].empty()) row[2] = number_text(std::stod(row[2]));
    all += row[0] + "\t" + row[1] + "\t" + row[2] + "\t" + row[3] + "\t" + row[4] + "\n";
  }
  return all;
}

std::string text_of_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The deletion vector {10}.
std::string ten_in_z85() {
  std::string bytes("\xd1\xd3\x39\x64\1\0\0\0\0\0\0\0\0\0\0\0\x3a\x30\0\0\1\0\0\0\0\0\0\0\x10\0\0\0\xa\0",
                    34);
  bytes.resize(36, '\0');
  std::string made;
  for (std::size_t at = 0; at < bytes.size(); at += 4) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
    std::string digits;
    for (int i = 0; i < 5; ++i, value /= 85)
      digits +=
          "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"[value % 85];
    made.append(digits.rbegin(), digits.rend());
  }
  return made;
}

/// A table of one file of ten rows, made by hand.
struct small_table {
  penstock_test::temp_dir dir;

  small_table() {
    std::filesystem::create_directories(dir / "_delta_log");
    ps::parquet_writer out((dir / "part 0.parquet").string(), {{"i", "int64"}, {"col-7", "string"}},
                           {.group_rows = 4});
    for (int i = 0; i < 10; ++i) out.write({{"i", i}, {"col-7", std::to_string(i)}});
    out.close();
  }
  std::string path() const { return dir.path().string(); }
  void commit(int version, const std::string& lines) const {
    std::string name = std::to_string(version);
    name.insert(0, 20 - name.size(), '0');
    std::ofstream(dir / "_delta_log" / (name + ".json"), std::ios::binary) << lines;
  }
  static std::string protocol(const std::string& features = "") {
    return features.empty() ? R"({"protocol":{"minReaderVersion":1,"minWriterVersion":2}})"
                              "\n"
                            : R"({"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":[)" +
                                  features + "],\"writerFeatures\":[]}}\n";
  }
  static std::string metadata(const std::string& configuration = "{}", const std::string& field = "") {
    return R"({"metaData":{"id":"some-id","format":{"provider":"parquet"},)"
           R"("schemaString":"{\"type\":\"struct\",\"fields\":[)" +
           std::string(R"({\"name\":\"i\",\"type\":\"long\",\"nullable\":true,\"metadata\":{}})") + field +
           R"(]}","partitionColumns":[],"configuration":)" + configuration + "}}\n";
  }
  static std::string add(const std::string& deletion_vector = "") {
    return R"({"add":{"path":"part%200.parquet","partitionValues":{},"size":1,"modificationTime":1,)"
           R"("dataChange":true)" +
           (deletion_vector.empty() ? "" : ",\"deletionVector\":" + deletion_vector) + "}}\n";
  }
  std::string error() const {
    try {
      (void)ps::delta(path());
    } catch (const ps::error& e) {
      return e.what();
    }
    return "none";
  }
};

/// The tables of tools/delta_oracles.py; false if there is no delta-rs to write them.
bool write_oracles(const std::filesystem::path& folder) {
  const char* const support = std::getenv("PENSTOCK_TEST_SUPPORT");
  const char* const named = std::getenv("PENSTOCK_TEST_ARROW");
  if (support == nullptr) return false;
  const std::string python = named == nullptr || *named == '\0' ? "python3" : named;
  if (!penstock_test::have_program("deltalake", python + " -c 'import deltalake'")) return false;
  const auto script =
      std::filesystem::path(support).parent_path().parent_path() / "tools" / "delta_oracles.py";
  const auto made = penstock_test::run_program(python + " " + script.string() + " " + folder.string());
  INFO(made.output);
  REQUIRE(made.status == 0);
  REQUIRE(made.output == "5\n");
  return true;
}

/// A column, as `arrow_value<T>` reads it.
template <class T, class Source>
std::vector<T> column_values(const Source& source, std::string_view name) {
  return penstock_test::member_values<T, ps::arrow_value<T>>(source, name);
}
/// A column of whole numbers, one per line; null is "null".
template <class Source>
std::string column_of(const Source& source, std::string_view name) {
  std::string all;
  for (const auto& value : column_values<std::optional<std::int64_t>>(source, name))
    all += (value ? std::to_string(*value) : "null") + "\n";
  return all;
}

bool says(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

using penstock_test::stored_folder;

TEST_CASE("source/delta: what delta-rs writes, at every version, value for value") {
  const penstock_test::temp_dir dir;
  if (!write_oracles(dir.path())) return;
  constexpr std::uint64_t newest = 5;
  const std::string path = (dir / "sales").string();
  std::vector<std::uint64_t> marks;
  for (std::uint64_t version = 0; version <= newest; ++version) {
    INFO(version);
    const auto table = ps::delta(path, {.version = version});
    CHECK(rows_of(table, version >= 3) ==
          normal(text_of_file(dir / (std::to_string(version) + ".expected"))));
    CHECK(says(table.describe(), "sales', version " + std::to_string(version) + ")"));
    CHECK(std::ranges::find(marks, table.fingerprint()) == marks.end());
    marks.push_back(table.fingerprint());
  }
  CHECK(ps::delta(path).fingerprint() == marks.back());
  CHECK(ps::delta("file://" + path).fingerprint() == marks.back());
  CHECK((ps::delta(path, {.version = 1}) | ps::where<"region">(ps::equals("a=b%/c"))).size() > 0);
  CHECK_THROWS_WITH(ps::delta(path, {.version = 6}), Catch::Contains("the log does not have version 6"));

  // Elsewhere it is the same dataset, and the log may begin with a checkpoint.
  std::filesystem::rename(dir / "sales", dir / "moved");
  const std::string moved = (dir / "moved").string();
  for (const char* const name : {"00000000000000000000.json", "00000000000000000001.json"})
    std::filesystem::remove(dir / "moved/_delta_log" / name);
  CHECK(ps::delta(moved, {.version = 3}).fingerprint() == marks[3]);
  CHECK_THROWS_WITH(ps::delta(moved, {.version = 1}), Catch::Contains("versions 2 to 5 may be there"));
}

TEST_CASE("source/delta: what delta-rs does not write: deleted rows, INT96, mapped columns, checkpoints") {
  const penstock_test::temp_dir dir;
  if (!write_oracles(dir.path())) return;
  const auto table = [&](const char* name) { return ps::delta((dir / name).string()); };
  CHECK(column_of(table("deleted"), "i") == text_of_file(dir / "deleted.expected"));
  CHECK(column_of(table("spark"), "t") == "1704067200000000\n1704067201000000\n1704067202000000\n");
  CHECK(says(table("spark").describe(), "t (timestamp[us, tz=UTC])"));
  CHECK((table("spark") | ps::where<"t">(ps::at_least(1704067201000000))).size() == 2);

  // By the numbers in files, whatever the files call the columns; "i" is what another column was called.
  CHECK(column_of(table("ids"), "i") == "0\n1\n2\n");
  CHECK(column_of(table("ids"), "k") == "10\n11\n12\n");
  CHECK(column_of(table("ids"), "later") == "null\nnull\nnull\n");
  CHECK(says(table("nested").describe(),
             "i (int64), r.x (int64), r.later (int64), r.y (list<struct<z: int64>>)"));
  CHECK(column_of(table("nested"), "r.x") == "0\n1\n2\n");
  CHECK(column_of(table("nested"), "r.later") == "null\nnull\nnull\n");
  CHECK((table("nested") | ps::where<"r.x">(ps::equals(1))).size() == 1);
  CHECK((table("ids") | ps::where<"i">(ps::equals(12))).size() == 0);

  CHECK(column_of(table("parts"), "i") == "0\n1\n2\n3\n10\n11\n12\n13\n14\n");
  for (const char* const name : {"sidecars", "sidecars_json"})
    CHECK(column_of(table(name), "i") == "10\n11\n12\n13\n14\n20\n21\n22\n23\n24\n25\n");
  for (const char* const part : {"00000000000000000003.checkpoint.0000000002.0000000002.parquet",
                                 "00000000000000000003.checkpoint.0000000003.0000000003.parquet"})
    std::filesystem::remove(dir / "parts/_delta_log" / part);
  CHECK_THROWS_WITH(table("parts"), Catch::Contains("or not all that it is made of"));
}

/// Whether a column has the same values in the rows of the first file and, as pyarrow has converted them, in
/// those of the second one; and in the first row `first`.
template <class T, class Source>
bool same_in_both(const Source& source, std::string_view name, const T& first) {
  const auto values = column_values<std::optional<T>>(source, name);
  REQUIRE(values.size() == 6);
  const bool nulls = !values[1] && !values[4];
  return nulls && values[0] == first && values[0] == values[3] && values[2] == values[5];
}
/// A value with the types of what it consists of: "[int16 -5, null]", "{double 0x..., string \"61\"}".
void add_typed(std::string& line, const ps::arrow_column& column, std::uint64_t row) {
  const ps::arrow_cell cell(column, row);
  if (cell.is_null()) {
    line += "null";
  } else if (column.type->layout == ps::arrow_layout::record) {
    line += '{';
    for (const ps::arrow_column& child : column.children) {
      add_typed(line, child, row + column.offset);
      line += ' ';
    }
    line += '}';
  } else if (column.type->layout == ps::arrow_layout::list32) {
    const ps::arrow_slice values = cell.list();
    line += '[';
    for (std::uint64_t i = 0; i < values.count; ++i) {
      add_typed(line, *values.column, values.first + i);
      line += ' ';
    }
    line += ']';
  } else {
    line += column.type->text() + ' ';
    penstock_test::add_cell(line, cell);
  }
}
/// All values of a table, a line for each one, with the types of what lists and maps consist of.
std::vector<std::string> typed_rows(const ps::parquet_source<ps::mapped_file>& table) {
  std::vector<std::string> made;
  const auto reader = table.connect();
  auto worker = typename ps::parquet_source<ps::mapped_file>::reader::worker();
  for (std::uint64_t i = 0; i < table.size(); ++i)
    reader.evaluate(ps::position{0, i}, worker, [&](auto&& row) {
      std::string line;
      for (std::size_t k = 0; k < row.size(); ++k) {
        line += std::string(row.name(k)) + " ";
        const ps::arrow_cell cell = row.member(k).cell();
        if (cell.type().layout != ps::arrow_layout::list32 || cell.is_null()) {
          penstock_test::add_cell(line, cell);
        } else {
          const ps::arrow_slice values = cell.list();
          for (std::uint64_t j = 0; j < values.count; ++j) {
            line += ' ';
            add_typed(line, *values.column, values.first + j);
          }
        }
        line += '\n';
      }
      made.push_back(std::move(line));
    });
  return made;
}
std::array<std::byte, 16> unscaled(std::int64_t low, std::int64_t high) {
  std::array<std::byte, 16> made{};
  for (std::size_t i = 0; i < 8; ++i) {
    made[i] = static_cast<std::byte>(static_cast<std::uint64_t>(low) >> 8 * i);
    made[8 + i] = static_cast<std::byte>(static_cast<std::uint64_t>(high) >> 8 * i);
  }
  return made;
}

TEST_CASE("source/delta: columns that the table has widened have their values in older files, exactly") {
  const penstock_test::temp_dir dir;
  if (!write_oracles(dir.path())) return;
  const auto table = ps::delta((dir / "widened").string());
  CHECK(says(table.describe(),
             "real (double), time (timestamp[us]), same (decimal128(9,2)), scaled (decimal128(10,4))"));
  CHECK(same_in_both<std::int16_t>(table, "short", -128));
  CHECK(same_in_both<std::int64_t>(table, "long", -2147483648));
  CHECK(same_in_both<double>(table, "float", 0.5));
  CHECK(same_in_both<double>(table, "byte_real", -128));
  CHECK(same_in_both<double>(table, "real", -2147483648.0));
  CHECK(same_in_both<std::int64_t>(table, "time", 1709164800000000));
  CHECK(same_in_both<std::array<std::byte, 16>>(table, "same", unscaled(-12345, -1)));
  CHECK(same_in_both<std::array<std::byte, 16>>(table, "scaled", unscaled(-1234500, -1)));
  CHECK(same_in_both<std::array<std::byte, 16>>(table, "counted", unscaled(-214748364800, -1)));
  // -2^63 * 10^10
  CHECK(same_in_both<std::array<std::byte, 16>>(table, "long_counted", unscaled(0, -5000000000)));
  CHECK(same_in_both<std::vector<std::int64_t>>(table, "list", {-2147483648, 2147483647}));
  CHECK(same_in_both<double>(table, "r.x", 2147483647.0));
  std::size_t in_place = 0;
  for (auto&& row : (table | ps::where<"short">(ps::equals(-128)) |
                     ps::decode<ps::field<"list", ps::arrow_value<std::span<const std::int64_t>>>>)
                        .epoch(0))
    in_place += ps::get<"list">(row).size();
  CHECK(in_place == 4);

  const std::vector<std::string> rows = typed_rows(table);
  REQUIRE(rows.size() == 6);
  for (std::size_t i = 0; i < 3; ++i) CHECK(rows[i] == rows[i + 3]);
  CHECK(says(rows[0], "map  {string \"61\" double c0e0000000000000 }"));
  CHECK(says(rows[2], "map  {string \"62\" double 3ff0000000000000 } {string \"63\" null }"));
  CHECK(says(rows[2], "r.y  {null } {double 4000000000000000 }"));
  CHECK(says(rows[0], "list  int64 -2147483648 int64 2147483647"));

  // Filters compare with the values as the table has them, whatever files say of theirs.
  const auto count = [&](const auto& filter) { return (table | filter).size(); };
  CHECK(count(ps::where<"real">(ps::less_than(-0.5))) == 2);
  CHECK(count(ps::where<"real">(ps::at_least(2147483646.5))) == 2);
  CHECK(count(ps::where<"real">(ps::equals(2147483647))) == 2);
  CHECK(count(ps::where<"real">(ps::equals(2147483646.5))) == 0);
  CHECK(count(ps::where<"time">(ps::equals(1709164800000000))) == 2);
  CHECK(count(ps::where<"time">(ps::less_than(0))) == 2);
  CHECK(count(ps::where<"float">(ps::greater_than(0.3))) == 2);
  CHECK(count(ps::where<"short">(ps::equals(127))) == 2);
}

TEST_CASE(
    "source/delta: a column of another type that was not widened is an error, and so is a partition's day") {
  const small_table table;
  const auto metadata = [](const std::string& type) {
    return R"({"metaData":{"id":"some-id","schemaString":"{\"type\":\"struct\",\"fields\":[)"
           R"({\"name\":\"i\",\"type\":\")" +
           type + R"(\"}]}","partitionColumns":[]}})" + "\n";
  };
  const auto error = [&](const std::string& type) {
    table.commit(0, table.protocol("\"typeWidening\"") + metadata(type) + table.add());
    return table.error();
  };
  CHECK(error("decimal(20,1)") == "none");
  for (const auto& [type, text] :
       {std::pair("double", "double"), std::pair("timestamp_ntz", "timestamp[us]"),
        std::pair("decimal(19,1)", "decimal128(19,1)"), std::pair("string", "string")})
    CHECK(says(error(type), "the column 'i' is of type int64 in the file, and of type " + std::string(text) +
                                " in the table"));

  // The day is that of a partition from before the column was widened.
  const std::string of_part =
      R"({"metaData":{"id":"some-id","schemaString":"{\"type\":\"struct\",\"fields\":[)"
      R"({\"name\":\"i\",\"type\":\"long\"},{\"name\":\"day\",\"type\":\"timestamp_ntz\"}]}",)"
      R"("partitionColumns":["day"]}})";
  table.commit(0, table.protocol("\"typeWidening\"") + of_part + "\n" +
                      R"({"add":{"path":"part%200.parquet","partitionValues":{"day":"1970-01-03"}}})");
  CHECK((ps::delta(table.path()) | ps::where<"day">(ps::equals(std::int64_t{2} * 86'400'000'000))).size() ==
        10);
}

TEST_CASE("source/delta: in any storage, tables are what they are in the local file system") {
  const penstock_test::temp_dir dir;
  if (!write_oracles(dir.path())) return;
  const auto same = [&](const auto& where, const char* name, const ps::delta_options& options) {
    INFO(name);
    const auto local = ps::delta((dir / name).string(), options);
    const auto far = ps::delta(where, options);
    CHECK(local.fingerprint() == far.fingerprint());
    CHECK(says(far.describe(), "delta('s3://bucket/" + std::string(name) + "', version "));
  };
  for (std::uint64_t version = 0; version < 6; ++version) {
    const ps::memory_files where = stored_folder(dir / "sales", "s3://bucket/sales");
    same(where, "sales", {.version = version});
    CHECK(rows_of(ps::delta(where, {.version = version}), version >= 3) ==
          normal(text_of_file(dir / (std::to_string(version) + ".expected"))));
  }
  for (const char* const name : {"deleted", "spark", "ids", "nested", "parts", "sidecars", "sidecars_json"})
    same(stored_folder(dir / name, "s3://bucket/" + std::string(name)), name, {});

  // The log's files are enough: others are opened by their names.
  const ps::memory_files all = stored_folder(dir / "deleted", "deleted");
  std::vector<std::string> log;
  for (const std::string& name : all.names())
    if (says(name, "_delta_log/")) log.push_back(name);
  CHECK(log.size() < all.names().size());
  const ps::retrying far(ps::simulated_storage(all, {.latency = std::chrono::microseconds(1)}));
  CHECK(column_of(ps::delta(far), "i") == text_of_file(dir / "deleted.expected"));
  CHECK(column_of(ps::delta(stored_folder(dir / "deleted", "")), "i") ==
        text_of_file(dir / "deleted.expected"));
  CHECK(column_of(ps::delta(ps::file(penstock_test::files_in(dir / "deleted/_delta_log"))), "i") ==
        text_of_file(dir / "deleted.expected"));
}

TEST_CASE("source/delta: names on the web are URLs, and are not decoded twice") {
  const penstock_test::temp_dir dir;
  if (!write_oracles(dir.path())) return;
  // A partition's folder has a space and a percent sign.
  ps::memory_files web;
  const ps::memory_files all = stored_folder(dir / "sales", "");
  for (std::size_t i = 0; i < all.names().size(); ++i) {
    std::string bytes(all.connect().size(static_cast<ps::object_id>(i)), '\0');
    all.connect().read(static_cast<ps::object_id>(i), 0, std::as_writable_bytes(std::span(bytes)));
    web.add(ps::detail::name_in_folder("https://host/sales", all.names()[i]), bytes);
  }
  CHECK(rows_of(ps::delta(web), true) == normal(text_of_file(dir / "5.expected")));
  const std::string far = "https://other/a%20b/%2525.parquet";
  CHECK(ps::detail::delta_path("https://host/sales", far) == far);
  CHECK(ps::detail::delta_path("s3://bucket/sales", "s3://bucket/a%20b") == "s3://bucket/a b");
}

TEST_CASE("source/delta: files that actions name as URIs, and what a storage has not") {
  const small_table table;
  table.commit(0, table.protocol() + table.metadata() +
                      R"({"add":{"path":"s3a://other/x%20y.parquet","partitionValues":{}}})");
  ps::memory_files where = stored_folder(table.dir.path(), "s3://bucket/t");
  where.add("s3://other/x y.parquet", text_of_file(table.dir / "part 0.parquet"));
  CHECK(column_of(ps::delta(where), "i") == "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n");
  const auto error = [&](const auto& storage, const ps::delta_options& options = {}) {
    try {
      (void)ps::delta(storage, options);
    } catch (const ps::error& e) {
      return std::string(e.what());
    }
    return std::string("none");
  };
  CHECK(says(error(where, {.timestamp = 5}), "the commit does not say when it was made; name a version"));
  CHECK(says(error(stored_folder(table.dir.path(), "gs://bucket/t")),
             "the table has the file 's3a://other/x%20y.parquet' of another file system"));
  CHECK(says(error(stored_folder(table.dir.path(), "s3://bucket/t")), "[file s3://other/x y.parquet]"));
  where.add("u/_delta_log/00000000000000000000.json", "");
  CHECK(says(error(where), "the storage has the logs of two tables, 's3://bucket/t' and 'u': name one"));
  CHECK(says(error(ps::memory_files().add("a/b.parquet", "")), "this is no table of Delta Lake"));
  CHECK(says(error(ps::memory_files()), "this is no table of Delta Lake"));
}

TEST_CASE("source/delta: a checkpoint that is damaged is an error, or a table") {
  const penstock_test::temp_dir dir;
  if (!write_oracles(dir.path())) return;
  const auto path = dir / "parts/_delta_log/00000000000000000003.checkpoint.0000000001.0000000002.parquet";
  const std::string whole = text_of_file(path);
  ps::rng random(1, 2, 3);
  std::size_t errors = 0;
  for (int i = 0; i < 300; ++i) {
    std::string damaged = whole;
    if (i % 3 == 0)
      damaged.resize(static_cast<std::size_t>(random.below(whole.size())));
    else
      damaged[static_cast<std::size_t>(random.below(whole.size()))] ^=
          static_cast<char>(1 << random.below(8));
    std::ofstream(path, std::ios::binary) << damaged;
    try {
      (void)ps::delta((dir / "parts").string());
    } catch (const ps::error&) {
      ++errors;
    }
  }
  CHECK(errors >= 100);
}

TEST_CASE("source/delta: the example in the header") {
  using namespace penstock;
  const penstock_test::temp_dir dir;
  const auto before = std::filesystem::current_path();
  std::filesystem::create_directories(dir / "sales/_delta_log");
  std::filesystem::current_path(dir.path());
  parquet_writer out("sales/0.parquet", {{"year", "int32"}, {"amount", "double"}});
  out.write({{"year", 2025}, {"amount", 1.5}});
  out.write({{"year", 2024}, {"amount", 2.5}});
  out.close();
  std::ofstream log("sales/_delta_log/00000000000000000000.json");
  log << small_table::protocol()
      << R"({"metaData":{"id":"x","schemaString":"{\"type\":\"struct\",\"fields\":[)"
      << R"({\"name\":\"year\",\"type\":\"integer\"},{\"name\":\"amount\",\"type\":\"double\"}]}",)"
      << R"("partitionColumns":[]}})"
      << "\n"
      << R"({"add":{"path":"0.parquet","partitionValues":{}}})"
      << "\n";
  log.close();
  for (int i = 1; i < 4; ++i)
    std::ofstream("sales/_delta_log/0000000000000000000" + std::to_string(i) + ".json");
  auto rows = delta("sales", {.version = 3}) | where<"year">(equals(2025)) | shuffle(seed(7)) |
              decode<field<"amount", arrow_value<double>>>;
  double sum = 0;
  for (auto&& row : rows.epoch(0)) sum += get<"amount">(row);
  std::filesystem::current_path(before);
  CHECK(sum == 1.5);
}

TEST_CASE("source/delta: dataset takes the log before the files") {
  const small_table table;
  const auto look = [&] {
    return ps::format_of(ps::dataset_listing(table.path()), ps::core_formats{}, ps::parquet_format{},
                         ps::delta_format{});
  };
  CHECK(look() == "delta");
  // Without the log, rows that were removed would come back.
  CHECK_THROWS_AS(ps::format_of(ps::dataset_listing(table.path()), ps::parquet_format{}), ps::error);
  std::filesystem::remove_all(table.dir / "_delta_log");
  CHECK(look() == "parquet");
}

TEST_CASE("source/delta: dataset finds the table in a storage of its log, or of all its files") {
  const small_table table;
  table.commit(0, table.protocol() + table.metadata() + table.add());
  const ps::memory_files all = stored_folder(table.dir.path(), "s3://bucket/t");
  const auto in_storage = [&](const auto& where, const auto&... formats) {
    const auto sources = ps::dataset(where, formats...);
    return std::visit(
        [](const auto& source) {
          if constexpr (requires { source.schema(); }) return source.describe();
          return std::string("another source");
        },
        sources);
  };
  const std::string said = ps::delta(all).describe();
  CHECK(says(said, "delta('s3://bucket/t', version 0)"));
  // The data are Parquet, and commits are JSON lines: the log counts more than both.
  CHECK(in_storage(all, ps::delta_format{}) == said);
  CHECK(in_storage(all, ps::core_formats{}, ps::parquet_format{}, ps::delta_format{}) == said);
  CHECK(in_storage(all, ps::delta_format{}, ps::core_formats{}, ps::parquet_format{}) == said);
  const ps::file log(penstock_test::files_in(table.dir / "_delta_log"));
  CHECK(in_storage(log, ps::core_formats{}, ps::delta_format{}) == ps::delta(table.path()).describe());
  CHECK(in_storage(all.with_names({"s3://bucket/t/part 0.parquet"}), ps::parquet_format{},
                   ps::delta_format{}) ==
        ps::parquet(all.with_names({"s3://bucket/t/part 0.parquet"})).describe());
  CHECK(column_of(std::get<0>(ps::dataset(log, ps::delta_format{})), "i") ==
        "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n");
  table.commit(1, "");
  const ps::memory_files later = stored_folder(table.dir.path(), "");
  CHECK(in_storage(later, ps::parquet_format{}, ps::delta_format{.options = {.version = 0}}) ==
        ps::delta(later, {.version = 0}).describe());

  // Without the format, the error says which one it takes; the rows of a table are not read without its log.
  CHECK_THROWS_WITH(ps::dataset(all, ps::parquet_format{}),
                    Catch::Contains("this looks like delta") && Catch::Contains("delta_format{}"));
  ps::memory_files two = all;
  two.add("u/_delta_log/00000000000000000000.json", "");
  CHECK_THROWS_WITH(ps::dataset(two, ps::delta_format{}), Catch::Contains("the logs of two tables"));
}

TEST_CASE("source/delta: deletion vectors in files and in the log, and names of columns that are mapped") {
  const small_table table;
  // {3, 5, 8} as Roaring writes it: no runs, one container that is an array.
  const std::string bitmap("\x3a\x30\0\0\1\0\0\0\0\0\2\0\x10\0\0\0\3\0\5\0\x8\0", 22);
  const std::string vector = std::string("\xd1\xd3\x39\x64", 4) + std::string("\1\0\0\0\0\0\0\0", 8) +
                             std::string(4, '\0') + bitmap;  // 38 bytes
  REQUIRE(vector.size() == 38);
  std::uint32_t sum = 0xffffffff;
  for (const char c : vector) {
    sum ^= static_cast<unsigned char>(c);
    for (int i = 0; i < 8; ++i) sum = (sum >> 1) ^ ((sum & 1) != 0 ? 0xedb88320u : 0u);
  }
  sum = ~sum;
  std::string file = "\1" + std::string("\0\0\0\x26", 4) + vector;
  for (const int shift : {24, 16, 8, 0}) file += static_cast<char>(sum >> shift & 255);
  const std::string name = "ab/deletion_vector_00000000-0000-0000-0000-000000000000.bin";
  std::filesystem::create_directories(table.dir / "ab");
  std::ofstream(table.dir / name, std::ios::binary) << file;
  const std::string said = R"({"storageType":"u","pathOrInlineDv":"ab00000000000000000000","offset":1,)"
                           R"("sizeInBytes":38,"cardinality":3})";
  const std::string mapped = R"(,{\"name\":\"letters\",\"type\":\"string\",\"nullable\":true,\"metadata\":{)"
                             R"(\"delta.columnMapping.physicalName\":\"col-7\"}})";
  table.commit(0, table.protocol("\"deletionVectors\",\"columnMapping\"") +
                      table.metadata(R"({"delta.columnMapping.mode":"name"})", mapped) + table.add());
  table.commit(1, R"({"remove":{"path":"part%200.parquet"}})"
                  "\n" +
                      table.add(said));
  const auto numbers = [&](std::uint64_t version) {
    std::string all;
    for (auto&& row : (ps::delta(table.path(), {.version = version}) |
                       ps::decode<ps::field<"i", ps::arrow_value<std::int64_t>>,
                                  ps::field<"letters", ps::arrow_value<std::string>>>)
                          .epoch(0)) {
      CHECK(std::to_string(ps::get<"i">(row)) == ps::get<"letters">(row));
      all += ps::get<"letters">(row);
    }
    return all;
  };
  CHECK(numbers(0) == "0123456789");
  CHECK(numbers(1) == "0124679");

  file[20] = static_cast<char>(file[20] ^ 1);
  std::ofstream(table.dir / name, std::ios::binary) << file;
  CHECK(says(table.error(), "the deletion vector has another checksum"));
  file[0] = 2;
  std::ofstream(table.dir / name, std::ios::binary) << file;
  CHECK(says(table.error(), "the file is no file of deletion vectors, or one of a format that is not known"));
  std::ofstream(table.dir / name, std::ios::binary) << "\1" << file.substr(1, 20);
  CHECK(says(table.error(), "the file has no deletion vector of that size there"));
  std::filesystem::remove(table.dir / name);
  CHECK(says(table.error(), "cannot open: No such file"));

  // {10} in the log; the file has rows 0 to 9.
  table.commit(2, R"({"remove":{"path":"part%200.parquet","deletionVector":)" + said + "}}\n" +
                      table.add(R"({"storageType":"i","pathOrInlineDv":")" + ten_in_z85() +
                                R"(","sizeInBytes":34,"cardinality":1})"));
  CHECK(says(table.error(), "row 10 of the file is deleted, and the file has 10 rows"));
}

TEST_CASE("source/delta: faults are one sentence with the place") {
  const small_table table;
  CHECK(says(table.error(), "this is no table of Delta Lake: there is no log in its folder _delta_log"));
  table.commit(0, table.protocol() + table.metadata() + table.add());
  CHECK(ps::delta(table.path()).size() == 10);
  table.commit(2, table.add());
  CHECK(says(table.error(), "the log does not have version 2, or not all that it is made of"));
  table.commit(1, "{\"add\": ");
  CHECK(says(table.error(), "line 1 of the log is no object of JSON"));
  table.commit(1, R"({"add":{"size":1}})");
  CHECK(says(table.error(), "line 1 of the log is not as Delta writes it"));
  table.commit(1, table.protocol("\"clustering-of-the-future\""));
  CHECK(says(table.error(), "the table has the feature 'clustering-of-the-future' of Delta"));
  table.commit(1, R"({"protocol":{"minReaderVersion":4,"minWriterVersion":7}})");
  CHECK(says(table.error(), "the table asks for readers of version 4"));
  table.commit(1, R"({"protocol":{"minReaderVersion":1e99,"minWriterVersion":7}})");
  CHECK(says(table.error(), "\"minReaderVersion\" should be a whole number of 32 bits, and is 1e+99"));
  table.commit(
      1, R"({"add":{"path":"x","deletionVector":{"storageType":"i","pathOrInlineDv":"","sizeInBytes":-1,)"
         R"("cardinality":0}}})");
  CHECK(says(table.error(), "\"sizeInBytes\" should be a whole number of 64 bits, and is -1"));
  table.commit(1, R"({"add":{"path":"s3://bucket/x.parquet","partitionValues":{}}})");
  CHECK(says(table.error(), "the table has the file 's3://bucket/x.parquet' of another file system"));
  table.commit(1, R"({"add":{"path":"gone.parquet","partitionValues":{}}})");
  CHECK(says(table.error(), "gone.parquet"));
  table.commit(1, R"({"add":{"path":"dbfs:/mnt/x.parquet","partitionValues":{}}})");
  CHECK(says(table.error(), "the table has the file 'dbfs:/mnt/x.parquet' of another file system"));
  const std::string deep(200'000, '[');
  table.commit(1, "{\"add\": " + deep + std::string(deep.size(), ']') + "}");
  CHECK(says(table.error(), "line 1 of the log is no object of JSON that can be read"));
  table.commit(1, R"({"metaData":{"id":"x","schemaString":")" + deep + R"("}})");
  CHECK(says(table.error(), "the schema in the log is no object of JSON that can be read"));
  table.commit(1, R"({"metaData":{"id":"x","schemaString":"{\"type\":\"struct\",\"fields\":[]}",)"
                  R"("partitionColumns":["ghost"]}})");
  CHECK(says(table.error(), "the table has partitions by the column 'ghost', which is not in its schema"));
  CHECK_THROWS_WITH(ps::delta(table.path(), {.version = 0, .timestamp = 1}),
                    Catch::Contains("has a version or a timestamp, not both"));
  table.commit(1, R"({"commitInfo":{"timestamp":2000}})");
  table.commit(0, R"({"commitInfo":{"timestamp":1000}})"
                  "\n" +
                      table.protocol() + table.metadata() + table.add());
  table.commit(2, R"({"commitInfo":{"timestamp":3000}})");
  CHECK(says(ps::delta(table.path(), {.timestamp = 2999}).describe(), "version 1)"));
  CHECK_THROWS_WITH(ps::delta(table.path(), {.timestamp = 999}),
                    Catch::Contains("no version that was there 999 ms"));
}

}  // namespace delta_test
