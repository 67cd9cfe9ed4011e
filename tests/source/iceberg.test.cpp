// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/iceberg.hpp>

#include <penstock/codec/arrow_value.hpp>
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

#include "support/avro_bytes.hpp"
#include "support/catch.hpp"
#include "support/external_program.hpp"
#include "support/members.hpp"
#include "support/stored_folder.hpp"
#include "support/temp_dir.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace ps = penstock;
namespace fs = std::filesystem;

namespace iceberg_test {

using table = ps::parquet_source<ps::mapped_file>;

std::string text_of_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void write_file(const fs::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

bool mentions_text(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

template <class Call>
std::string error_of(Call&& call) {
  try {
    call();
  } catch (const ps::error& e) {
    return e.what();
  }
  return "none";
}

/// Values as tools/iceberg_oracles.py spells them.
std::string spelled(const std::string& value) { return "=" + value; }
std::string spelled(std::int64_t value) { return std::to_string(value); }
std::string spelled(bool value) { return value ? "1" : "0"; }
std::string spelled(double value) {
  std::ostringstream out;
  out << value;
  return out.str();
}
// A decimal.
std::string spelled(const std::array<std::byte, 16>& value) {
  return std::to_string(static_cast<std::int64_t>(ps::detail::load_little<std::uint64_t>(value.data())));
}

using lines = std::set<std::string>;

/// A column, as `arrow_value<T>` reads it.
template <class T, class Source>
std::vector<T> column_values(const Source& source, std::string_view name) {
  return penstock_test::member_values<T, ps::arrow_value<T>>(source, name);
}
template <class T>
std::string line_of(const std::string& column, std::int64_t id, const std::optional<T>& value) {
  return column + "\t" + std::to_string(id) + "\t" + (value ? spelled(*value) : "null");
}
template <class T>
void add_column(const table& rows, const std::string& column, lines& into) {
  const auto ids = column_values<std::int64_t>(rows, "id");
  const auto values = column_values<std::optional<T>>(rows, column);
  for (std::size_t i = 0; i < ids.size(); ++i) into.insert(line_of(column, ids[i], values[i]));
}
/// In a run, with two workers.
void add_names(const table& rows, lines& into) {
  for (auto&& row : (rows | ps::shuffle(ps::seed(1)) |
                     ps::decode<ps::field<"id", ps::arrow_value<std::int64_t>>,
                                ps::field<"name", ps::arrow_value<std::optional<std::string>>>> |
                     ps::workers(2))
                        .epoch(0))
    into.insert(line_of("name", ps::get<"id">(row), ps::get<"name">(row)));
}

void add(const table& rows, const std::string& column, lines& into) {
  if (column == "name") return add_names(rows, into);
  const std::set<std::string_view> texts{"title", "region", "place.city", "place.town"};
  const std::set<std::string_view> numbers{"place.size", "place.zip.code", "place.zip.number", "count", "day",
                                           "time"};
  if (texts.contains(column)) return add_column<std::string>(rows, column, into);
  if (numbers.contains(column)) return add_column<std::int64_t>(rows, column, into);
  if (column == "ratio" || column == "amount") return add_column<double>(rows, column, into);
  if (column == "price") return add_column<std::array<std::byte, 16>>(rows, column, into);
  if (column == "sold") return add_column<bool>(rows, column, into);
  REQUIRE(column == "extra");
  for (const ps::arrow_type& one : rows.schema().children) {
    if (one.name != "extra") continue;
    if (one.format == "u") return add_column<std::string>(rows, column, into);
    return add_column<std::int64_t>(rows, column, into);
  }
}

struct known_snapshot {
  std::int64_t id, time;
  lines expected;
  std::set<std::string> columns;
};

std::vector<known_snapshot> snapshots_of(const fs::path& folder, const std::string& name) {
  std::vector<known_snapshot> made;
  std::istringstream in(text_of_file(folder / (name + ".snapshots")));
  for (known_snapshot one; in >> one.id >> one.time; made.push_back(one)) {
    one.expected.clear();
    one.columns = {"id"};
    std::istringstream rows(text_of_file(folder / (name + "." + std::to_string(one.id) + ".expected")));
    for (std::string line; std::getline(rows, line);) {
      one.expected.insert(line);
      one.columns.insert(line.substr(0, line.find('\t')));
    }
  }
  return made;
}

/// Compares all snapshots of a table with what pyiceberg reads, and returns their fingerprints.
std::vector<std::uint64_t> compare(const std::string& path, const std::vector<known_snapshot>& snapshots) {
  std::vector<std::uint64_t> marks;
  for (const known_snapshot& one : snapshots) {
    INFO(path << ", snapshot " << one.id);
    const table rows = ps::iceberg(path, {.snapshot = one.id});
    INFO(rows.describe());
    lines found;
    for (const std::string& column : one.columns)
      if (column != "id") add(rows, column, found);
    CHECK(found == one.expected);
    const std::string line = rows.describe();
    CHECK(mentions_text(line, "iceberg('" + path + "', snapshot " + std::to_string(one.id) + ")("));
    if (!one.expected.empty()) {
      std::size_t shown = 1;
      for (std::size_t at = 0; (at = line.find("), ", at)) != line.npos; ++at)
        if (at > line.find("rows of")) ++shown;
      CHECK(shown == one.columns.size());
    } else {
      CHECK(rows.size() == 0);
    }
    CHECK(std::ranges::find(marks, rows.fingerprint()) == marks.end());
    marks.push_back(rows.fingerprint());
  }
  return marks;
}

/// The tables of tools/iceberg_oracles.py; false if it cannot run.
bool make_tables(const fs::path& folder) {
  const char* const support = std::getenv("PENSTOCK_TEST_SUPPORT");
  const char* const named = std::getenv("PENSTOCK_TEST_ARROW");
  if (support == nullptr) return false;
  const std::string python = named == nullptr || *named == '\0' ? "python3" : named;
  if (!penstock_test::have_program("pyiceberg",
                                   python + " -c 'import pyiceberg.catalog.sql, pyiceberg_core'"))
    return false;
  const auto script = fs::path(support).parent_path().parent_path() / "tools" / "iceberg_oracles.py";
  const auto made = penstock_test::run_program(python + " " + script.string() + " " + folder.string());
  INFO(made.output);
  REQUIRE(made.status == 0);
  return true;
}

}  // namespace iceberg_test

using namespace iceberg_test;

TEST_CASE("source/iceberg: what pyiceberg writes, at every snapshot, value for value") {
  const penstock_test::temp_dir dir;
  const fs::path folder = fs::canonical(dir.path());
  if (!make_tables(folder)) return;
  const std::string sales = (folder / "shop/sales").string();
  const auto of_sales = snapshots_of(folder, "sales");
  REQUIRE(of_sales.size() >= 10);
  const auto marks = compare(sales, of_sales);
  compare((folder / "shop/deletes").string(), snapshots_of(folder, "deletes"));
  compare((folder / "shop/one").string(), snapshots_of(folder, "one"));
  compare((folder / "shop/added").string(), snapshots_of(folder, "added"));
  compare((folder / "shop/vectors").string(), snapshots_of(folder, "vectors"));
  const table types = ps::iceberg((folder / "shop/types").string());
  CHECK(mentions_text(
      types.describe(),
      "2 rows of uuid (fixed_size_binary[16]), fixed (fixed_size_binary[3]), raw (binary), clock "
      "(time64[us]), zoned (timestamp[us, tz=UTC]), price (decimal128(9,2)), ratio (float), id (int64)"));
  for (auto&& row : (types | ps::decode<ps::field<"id", ps::arrow_value<std::int64_t>>,
                                        ps::field<"uuid", ps::arrow_value<std::array<std::byte, 16>>>,
                                        ps::field<"fixed", ps::arrow_value<std::array<std::byte, 3>>>,
                                        ps::field<"clock", ps::arrow_value<std::int64_t>>,
                                        ps::field<"ratio", ps::arrow_value<double>>>)
                        .epoch(0)) {
    CHECK(ps::get<"uuid">(row)[15] == static_cast<std::byte>(ps::get<"id">(row)));
    CHECK(ps::get<"fixed">(row)[2] == std::byte{'c'});
    CHECK(ps::get<"clock">(row) == 3'723'000'000 + ps::get<"id">(row));
    CHECK(ps::get<"ratio">(row) == 0.5);
  }
  const table lists = ps::iceberg((folder / "shop/lists").string());
  CHECK(mentions_text(lists.describe(),
                      "tags (list<string>), spots (list<struct<town: string, size: int32>>), named "
                      "(map<struct<key: string, value: struct<y: int64>>>)"));
  for (auto&& row : (lists | ps::decode<ps::field<"id", ps::arrow_value<std::int64_t>>,
                                        ps::field<"tags", ps::arrow_value<std::vector<std::string>>>>)
                        .epoch(0)) {
    const auto id = ps::get<"id">(row);
    CHECK(ps::get<"tags">(row) ==
          std::vector<std::string>(static_cast<std::size_t>(id), "tag " + std::to_string(id)));
  }
  CHECK(mentions_text(
      error_of([&] { (void)ps::iceberg((folder / "shop/gone").string()); }),
      "the column 'spots' is of type large_list<struct<town: large_string, deleted size: int32>> in the "
      "file, and of type list<struct<town: string, size: int32>> in the table"));
  const table empty = ps::iceberg((folder / "shop/empty").string());
  CHECK(empty.size() == 0);
  CHECK(mentions_text(empty.describe(), "/shop/empty', no snapshot)(0 files"));

  // The current snapshot, and times.
  CHECK(ps::iceberg(sales).fingerprint() == marks.back());
  CHECK(ps::iceberg(sales, {.timestamp = of_sales[2].time}).fingerprint() == marks[2]);
  CHECK(ps::iceberg(sales, {.timestamp = of_sales.back().time + 1}).fingerprint() == marks.back());
  CHECK(mentions_text(error_of([&] { (void)ps::iceberg(sales, {.timestamp = of_sales[0].time - 1}); }),
                      "the first that can be read is of " + std::to_string(of_sales[0].time)));
  CHECK(mentions_text(error_of([&] { (void)ps::iceberg(sales, {.snapshot = 5}); }),
                      "does not have the snapshot 5, or not any more; those that can be read are " +
                          std::to_string(of_sales[0].id) + ", "));

  // Tags and branches; a branch has the columns that the table has now.
  CHECK(ps::iceberg(sales, {.ref = "old"}).fingerprint() == marks[3]);
  CHECK(ps::iceberg(sales, {.ref = "main"}).fingerprint() == marks.back());
  const table audit = ps::iceberg(sales, {.ref = "audit"});
  CHECK(audit.size() == ps::iceberg(sales, {.snapshot = of_sales[3].id}).size());
  CHECK(mentions_text(audit.describe(), "title (string)"));
  CHECK(mentions_text(ps::iceberg(sales, {.ref = "old"}).describe(), "name (string)"));
  CHECK(mentions_text(error_of([&] { (void)ps::iceberg(sales, {.ref = "gone"}); }),
                      "does not have the branch or tag 'gone'; it has audit, main, old"));

  // Filters, of a column that comes from the manifests and of one of the files.
  const table first = ps::iceberg(sales, {.snapshot = of_sales[0].id});
  CHECK((first | ps::where<"region">(ps::equals("a=b%/c"))).size() == 8);
  CHECK((first | ps::where<"sold">(ps::equals(true)) | ps::where<"id">(ps::less_than(5))).size() == 3);
  CHECK(mentions_text((first | ps::columns<"id", "region">).describe(),
                      "20 rows of id (int64), region (string)"));

  // Metadata of version 1 that list the manifests themselves.
  const auto of_one = snapshots_of(folder, "one");
  fs::copy_file(folder / "one.json", folder / "shop/one/metadata/named.json");
  compare((folder / "shop/one/metadata/named.json").string(), of_one);

  // In any storage it is the same dataset; the files of its metadata are enough to find the others.
  for (const char* const name : {"sales", "deletes", "one", "vectors"}) {
    const ps::memory_files all = penstock_test::stored_folder(folder / "shop" / name, "s3://lake/a");
    for (const known_snapshot& one : snapshots_of(folder, name)) {
      INFO(name << ", snapshot " << one.id);
      const auto near = ps::iceberg((folder / "shop" / name).string(), {.snapshot = one.id});
      const auto far = ps::iceberg(all, {.snapshot = one.id});
      CHECK(far.fingerprint() == near.fingerprint());
      CHECK(far.size() == near.size());
      CHECK(
          mentions_text(far.describe(), "iceberg('s3://lake/a', snapshot " + std::to_string(one.id) + ")("));
    }
    std::uint64_t rows = 0;
    const ps::retrying metadata(ps::file(penstock_test::files_in(folder / "shop" / name / "metadata")));
    const auto fetched = ps::iceberg(metadata);
    CHECK(fetched.fingerprint() == ps::iceberg(all).fingerprint());
    for (auto&& row : (fetched | ps::decode<ps::field<"id", ps::arrow_value<std::int64_t>>>).epoch(0))
      rows += ps::get<"id">(row) >= 0 ? 1 : 0;
    CHECK(rows == fetched.size());
  }

  // Later and elsewhere it is the same dataset.
  fs::copy(folder / "shop/sales", folder / "copy", fs::copy_options::recursive);
  fs::rename(folder / "shop/sales", folder / "moved");
  for (const char* const name : {"copy", "moved"}) {
    std::vector<std::uint64_t> same;
    for (const known_snapshot& one : of_sales)
      same.push_back(ps::iceberg((folder / name).string(), {.snapshot = one.id}).fingerprint());
    CHECK(same == marks);
  }
  CHECK(compare((folder / "moved").string(), of_sales) == marks);
  CHECK(mentions_text(error_of([&] { (void)ps::iceberg(sales); }), "this is no table of Iceberg"));
}

namespace iceberg_test {

/// A table made by hand, of files of ten rows that have no numbers of fields.
struct small_iceberg {
  penstock_test::temp_dir dir;
  std::string codec;  // of the files of Avro
  std::string snapshot = R"("snapshot-id":7,"sequence-number":9,"timestamp-ms":1000,"schema-id":0,)"
                         R"("manifest-list":"s3://bucket/t/metadata/list.avro")";
  std::string more = "";  // of the metadata
  std::string schema = R"({"id":1,"name":"i","required":false,"type":"long"})";
  std::string spec = "";
  int version = 2;

  small_iceberg() {
    fs::create_directories(dir / "metadata");
    fs::create_directories(dir / "data");
  }
  std::string path() const { return dir.path().string(); }
  void data(const std::string& name) const {
    ps::parquet_writer out((dir / "data" / name).string(), {{"i", "int64"}}, {.group_rows = 4});
    for (int i = 0; i < 10; ++i) out.write({{"i", i}});
    out.close();
  }
  void deletes(const std::string& name, const std::vector<std::pair<std::string, std::int64_t>>& rows) const {
    ps::parquet_writer out((dir / "data" / name).string(), {{"file_path", "string"}, {"pos", "int64"}});
    for (const auto& [file, row] : rows)
      out.write({{"file_path", "s3://bucket/t/data/" + file}, {"pos", row}});
    out.close();
  }
  void metadata(const std::string& name = "v1.metadata.json") const {
    write_file(dir / "metadata" / name,
               R"({"format-version":)" + std::to_string(version) +
                   R"(,"table-uuid":"some-id","location":"s3://bucket/t/","current-snapshot-id":7,)" +
                   R"("current-schema-id":0,"schemas":[{"type":"struct","schema-id":0,"fields":[)" + schema +
                   R"(]}],"partition-specs":[{"spec-id":0,"fields":[)" + spec + R"(]}],"snapshots":[{)" +
                   snapshot + "}]" + more + "}");
  }

  /// A file of deletion vectors that has this one; where it stands, with its size.
  std::pair<std::int64_t, std::int64_t> vector(const std::string& name, const std::vector<int>& rows,
                                               std::uint32_t wrong = 0) const {
    const auto little = [](std::uint64_t value, std::size_t size) {
      std::string made;
      for (std::size_t i = 0; i < size; ++i) made += static_cast<char>(value >> (8 * i));
      return made;
    };
    const auto big = [&](std::uint32_t value) {
      const std::string made = little(value, 4);
      return std::string(made.rbegin(), made.rend());
    };
    std::string all = little(1681511377, 4) + little(1, 8) + little(0, 4) + little(12346, 4) + little(1, 4) +
                      little(0, 2) + little(rows.size() - 1, 2) + little(16, 4);
    for (const int row : rows) all += little(static_cast<std::uint64_t>(row), 2);
    std::uint32_t sum = 0xffffffff;
    for (const char one : all) {
      sum ^= static_cast<unsigned char>(one);
      for (int i = 0; i < 8; ++i) sum = (sum >> 1) ^ ((sum & 1) != 0 ? 0xedb88320u : 0u);
    }
    const std::string blob = big(static_cast<std::uint32_t>(all.size())) + all + big(~sum + wrong);
    write_file(dir / "data" / name, "PFA1" + blob + "PFA1{}");
    return {4, static_cast<std::int64_t>(blob.size())};
  }

  struct entry {
    std::string name;
    std::int64_t status = 1, content = 0;
    std::optional<std::int64_t> sequence = {};
    std::string format = "PARQUET";
    std::int64_t part = 0;
    std::int64_t rows = 10;
    std::string only = "", key = "";
    std::pair<std::int64_t, std::int64_t> vector = {0, 0};
  };
  static std::string optional_text(const std::string& text) {
    return text.empty() ? penstock_test::avro_number(0)
                        : penstock_test::avro_number(1) + penstock_test::avro_text(text);
  }
  void manifest(const std::string& name, const std::vector<entry>& entries) const {
    using penstock_test::avro_number;
    using penstock_test::avro_text;
    const std::string of_entry =
        R"({"type":"record","name":"manifest_entry","fields":[{"name":"status","field-id":0,"type":"int"},)"
        R"({"name":"sequence_number","field-id":3,"type":["null","long"]},{"name":"data_file","field-id":2,)"
        R"("type":{"type":"record","name":"r2","fields":[{"name":"content","field-id":134,"type":"int"},)"
        R"({"name":"file_path","field-id":100,"type":"string"},)"
        R"({"name":"file_format","field-id":101,"type":"string"},)"
        R"({"name":"partition","field-id":102,"type":{"type":"record","name":"r102","fields":[)"
        R"({"name":"year","field-id":1000,"type":["null","int"]}]}},)"
        R"({"name":"record_count","field-id":103,"type":"long"},)"
        R"({"name":"key_metadata","field-id":131,"type":["null","bytes"]},)"
        R"({"name":"referenced_data_file","field-id":143,"type":["null","string"]},)"
        R"({"name":"content_offset","field-id":144,"type":["null","long"]},)"
        R"({"name":"content_size_in_bytes","field-id":145,"type":["null","long"]}]}}]})";
    std::string all;
    for (const entry& one : entries) {
      all += avro_number(one.status) +
             (one.sequence ? avro_number(1) + avro_number(*one.sequence) : avro_number(0)) +
             avro_number(one.content) +
             avro_text(one.name.find('/') == one.name.npos ? "s3://bucket/t/data/" + one.name : one.name) +
             avro_text(one.format) +
             (one.part == 0 ? avro_number(0) : avro_number(1) + avro_number(one.part)) +
             avro_number(one.rows) + optional_text(one.key) + optional_text(one.only);
      for (const std::int64_t number : {one.vector.first, one.vector.second})
        all += number == 0 ? avro_number(0) : avro_number(1) + avro_number(number);
    }
    write_file(dir / "metadata" / name,
               penstock_test::avro_head(of_entry, codec) +
                   penstock_test::avro_block(static_cast<std::int64_t>(entries.size()), all));
  }
  struct listed {
    std::string name;
    std::int64_t content = 0, sequence = 1, spec = 0;
  };
  void list(const std::vector<listed>& manifests) const {
    using penstock_test::avro_number;
    const std::string of_manifest = R"({"type":"record","name":"manifest_file","fields":[)"
                                    R"({"name":"manifest_path","field-id":500,"type":"string"},)"
                                    R"({"name":"partition_spec_id","field-id":502,"type":"int"},)"
                                    R"({"name":"content","field-id":517,"type":"int"},)"
                                    R"({"name":"sequence_number","field-id":515,"type":"long"}]})";
    std::string all;
    for (const listed& one : manifests)
      all += penstock_test::avro_text("s3://bucket/t/metadata/" + one.name) + avro_number(one.spec) +
             avro_number(one.content) + avro_number(one.sequence);
    write_file(dir / "metadata/list.avro",
               penstock_test::avro_head(of_manifest) +
                   penstock_test::avro_block(static_cast<std::int64_t>(manifests.size()), all));
  }
  /// One file, in one manifest.
  void make(const entry& one, bool deletes = false) const {
    data("0.parquet");
    if (deletes) {
      manifest("rows.avro", {{.name = "0.parquet"}});
      manifest("deletes.avro", {one});
      list({{.name = "rows.avro"}, {.name = "deletes.avro", .content = 1, .sequence = 2}});
    } else {
      manifest("rows.avro", {one});
      list({{.name = "rows.avro"}});
    }
    metadata();
  }
  std::string error(const ps::iceberg_options& options = {}) const {
    return error_of([&] { (void)ps::iceberg(path(), options); });
  }
  std::string numbers() const {
    std::string all;
    for (auto&& row :
         (ps::iceberg(path()) | ps::decode<ps::field<"i", ps::arrow_value<std::optional<std::int64_t>>>>)
             .epoch(0))
      all += ps::get<"i">(row) ? std::to_string(*ps::get<"i">(row)) + " " : "null ";
    return all;
  }
};

}  // namespace iceberg_test

TEST_CASE("source/iceberg: the example in the header") {
  using namespace penstock;
  small_iceberg table;
  // As Hive has it, the column that partitions is not in the files.
  for (const double amount : {0.5, 1.5}) {
    parquet_writer out((table.dir / (amount > 1 ? "data/1.parquet" : "data/0.parquet")).string(),
                       {{"amount", "double"}});
    for (int i = 0; i < 10; ++i) out.write({{"amount", amount}});
    out.close();
  }
  table.schema = R"({"id":2,"name":"year","type":"int"},{"id":1,"name":"amount","type":"double"})";
  table.spec = R"({"source-id":2,"field-id":1000,"name":"year","transform":"identity"})";
  table.snapshot.replace(table.snapshot.find(":7"), 2, ":3051729675574597004");
  table.manifest("rows.avro", {{.name = "1.parquet", .part = 2025}, {.name = "0.parquet", .part = 2024}});
  table.list({{.name = "rows.avro"}});
  table.metadata();
  const auto before = fs::current_path();
  fs::create_directory_symlink(table.path(), table.dir / "sales");
  fs::current_path(table.dir.path());
  auto rows = iceberg("sales", {.snapshot = 3051729675574597004}) | where<"year">(equals(2025)) |
              shuffle(seed(7)) | decode<field<"amount", arrow_value<double>>>;
  double sum = 0;
  for (auto&& row : rows.epoch(0)) sum += get<"amount">(row);
  fs::current_path(before);
  CHECK(sum == 15);
}

TEST_CASE("source/iceberg: dataset finds the table in a storage of its metadata, or of all its files") {
  small_iceberg table;
  table.make({.name = "0.parquet"});
  const ps::memory_files all = penstock_test::stored_folder(table.dir.path(), "s3://bucket/t");
  const auto found = [&](const auto& where) {
    const auto sources = ps::dataset(where, ps::core_formats{}, ps::parquet_format{}, ps::iceberg_format{});
    return std::visit(
        [](const auto& source) {
          if constexpr (requires { source.schema(); }) return source.describe();
          return std::string("another source");
        },
        sources);
  };
  const std::string said = ps::iceberg(all).describe();
  CHECK(mentions_text(said, "iceberg('s3://bucket/t', snapshot 7)"));
  CHECK(found(all) == said);
  CHECK(found(ps::file(penstock_test::files_in(table.dir / "metadata"))) ==
        ps::iceberg(table.path()).describe());
  CHECK(mentions_text(found(all.with_names({"s3://bucket/t/data/0.parquet"})), "parquet("));
  const auto is_lake = [](const auto& where) { (void)ps::dataset(where, ps::parquet_format{}); };
  CHECK(mentions_text(error_of([&] { is_lake(all); }), "this looks like iceberg"));
}

TEST_CASE("source/iceberg: position deletes are of older files of their partition") {
  small_iceberg table;
  table.spec = R"({"source-id":1,"field-id":1000,"name":"year","transform":"truncate[10]"})";
  for (const char* const name : {"0.parquet", "1.parquet", "2.parquet", "3.parquet"}) table.data(name);
  std::vector<std::pair<std::string, std::int64_t>> all;
  for (const char* const name : {"0.parquet", "1.parquet", "2.parquet", "3.parquet"})
    for (const std::int64_t row : {9, 4, 5, 6, 7, 4}) all.emplace_back(name, row);
  table.deletes("all.parquet", all);
  table.deletes("one.parquet", {{"0.parquet", 0}, {"1.parquet", 1}});
  table.manifest("old.avro", {{.name = "0.parquet", .status = 0, .sequence = 3, .part = 1},
                              {.name = "1.parquet", .status = 0, .sequence = 4, .part = 1},
                              {.name = "gone.parquet", .status = 2, .sequence = 4, .part = 1}});
  table.manifest("new.avro",
                 {{.name = "2.parquet", .part = 1}, {.name = "3.parquet", .sequence = 3, .part = 2}});
  table.manifest("deletes.avro",
                 {{.name = "all.parquet", .status = 0, .content = 1, .sequence = 4, .part = 1},
                  {.name = "one.parquet", .content = 1, .part = 1, .only = "s3://bucket/t/data/0.parquet"}});
  table.list({{.name = "old.avro", .sequence = 5},
              {.name = "deletes.avro", .content = 1, .sequence = 5},
              {.name = "new.avro", .sequence = 5}});
  table.metadata();
  const std::string whole = "0 1 2 3 4 5 6 7 8 9 ";
  CHECK(table.numbers() == "1 2 3 8 0 1 2 3 8 " + whole + whole);

  table.deletes("one.parquet", {{"0.parquet", 10}});
  CHECK(mentions_text(table.error(), "have row 10 of 's3://bucket/t/data/0.parquet', which has 10 rows"));
  CHECK(mentions_text(table.error(), "one.parquet"));
  table.deletes("one.parquet", {{"0.parquet", -1}});
  CHECK(mentions_text(table.error(), "have row -1"));
  write_file(table.dir / "data/one.parquet", "PAR1");
  CHECK(mentions_text(table.error(), "Arrow cannot read it"));
  table.data("one.parquet");
  CHECK(mentions_text(table.error(), "does not have the columns file_path and pos"));
}

TEST_CASE("source/iceberg: deletion vectors, instead of position deletes of their files") {
  small_iceberg table;
  table.version = 3;
  for (const char* const name : {"0.parquet", "1.parquet", "2.parquet"}) table.data(name);
  const std::string of = "s3://bucket/t/data/";
  const auto place = table.vector("v.puffin", {1, 3, 9});
  table.deletes("old.parquet", {{"0.parquet", 5}, {"1.parquet", 0}});
  table.manifest("rows.avro", {{.name = "0.parquet", .sequence = 1},
                               {.name = "1.parquet", .sequence = 1},
                               {.name = "2.parquet", .sequence = 5}});
  table.list({{.name = "rows.avro", .sequence = 5}, {.name = "deletes.avro", .content = 1, .sequence = 4}});
  table.metadata();
  const small_iceberg::entry old{.name = "old.parquet", .content = 1, .sequence = 4};
  const auto entry = [&](const std::string& file) {
    return small_iceberg::entry{
        .name = "v.puffin", .content = 1, .format = "PUFFIN", .rows = 3, .only = of + file, .vector = place};
  };
  const auto with = [&](const std::vector<small_iceberg::entry>& entries) {
    table.manifest("deletes.avro", entries);
    return table.error();
  };
  // The third is newer than its vector, and the last one is not there any more.
  CHECK(with({old, entry("0.parquet"), entry("2.parquet"), entry("gone.parquet")}) == "none");
  CHECK(table.numbers() == "0 2 4 5 6 7 8 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 ");

  CHECK(mentions_text(with({entry("0.parquet"), entry("0.parquet")}), "has two deletion vectors of '" + of));
  small_iceberg::entry other = entry("0.parquet");
  other.rows = 4;
  CHECK(mentions_text(with({other}), "has 3 rows, and its manifest says 4"));
  other.rows = 2;
  CHECK(mentions_text(with({other}), "more than 2 numbers"));
  other.only.clear();
  CHECK(mentions_text(with({other}), "does not say where it is, or of which file"));
  other = entry("0.parquet");
  other.vector.second = 11;
  CHECK(mentions_text(with({other}), "does not say where it is"));
  other.vector.second = -1;
  CHECK(mentions_text(with({other}), "does not say where it is"));
  for (const auto& [offset, size] : {std::pair<std::int64_t, std::int64_t>{5, place.second},
                                     {4, place.second - 1},
                                     {4, 4000},
                                     {std::int64_t{1} << 62, place.second},
                                     {4, std::int64_t{1} << 62}}) {
    other.vector = {offset, size};
    CHECK(mentions_text(with({other}), "no deletion vector of that size there"));
    CHECK(mentions_text(with({other}), "v.puffin"));
  }
  table.vector("v.puffin", {1, 3, 10});
  CHECK(mentions_text(with({entry("0.parquet")}), "have row 10 of"));
  table.vector("v.puffin", {1, 3, 9}, 1);
  CHECK(mentions_text(with({entry("0.parquet")}), "has another checksum: the file is damaged"));
  write_file(table.dir / "data/v.puffin", "PAR1" + std::string(100, 'x'));
  CHECK(mentions_text(with({entry("0.parquet")}), "is no file of deletion vectors"));
  other = entry("0.parquet");
  other.content = 0;
  CHECK(mentions_text(with({other}), "a manifest of deletes has"));
}

TEST_CASE("source/iceberg: what is not read is an error that says so") {
  small_iceberg table;
  CHECK(mentions_text(table.error(), "this is no table of Iceberg"));
  table.make({.name = "0.parquet"});
  CHECK(table.numbers() == "0 1 2 3 4 5 6 7 8 9 ");
  CHECK(mentions_text(table.error({.snapshot = 1, .timestamp = 1}),
                      "has a snapshot, a timestamp or a ref, and only one of them"));
  CHECK(mentions_text(table.error({.timestamp = 999}),
                      "had no snapshot 999 ms after 1970; the first that can be read is of 1000"));
  CHECK(mentions_text(table.error({.snapshot = 8}),
                      "the snapshot 8, or not any more; those that can be read are 7"));
  const auto said = [&](const small_iceberg::entry& one, bool deletes = false) {
    table.make(one, deletes);
    return table.error();
  };
  CHECK(mentions_text(said({.name = "e.parquet", .content = 2}, true),
                      "equality deletes, 's3://bucket/t/data/e.parquet'"));
  CHECK(mentions_text(said({.name = "e.puffin", .content = 1, .format = "puffin"}, true),
                      "does not say where it is, or of which file"));
  CHECK(mentions_text(said({.name = "0.parquet", .content = 1}), "a manifest of rows has"));
  CHECK(mentions_text(said({.name = "0.parquet"}, true), "a manifest of deletes has"));
  CHECK(mentions_text(said({.name = "0.orc", .format = "ORC"}), "of format ORC; only Parquet is read"));
  CHECK(mentions_text(said({.name = "0.parquet", .key = "secret"}), "the encrypted file"));
  CHECK(mentions_text(said({.name = "0.parquet", .status = 3}), "has status 3"));
  CHECK(mentions_text(said({.name = "0.parquet", .status = 0}), "has no sequence number"));
  CHECK(mentions_text(said({.name = "0.parquet", .rows = -1}), "has -1 rows"));
  CHECK(mentions_text(said({.name = "gone.parquet"}),
                      "the file 's3://bucket/t/data/gone.parquet' of another file system"));
  CHECK(mentions_text(said({.name = "s3://other/0.parquet"}), "of another file system"));
  CHECK(mentions_text(said({.name = "file:///nowhere/0.parquet"}),
                      "which is not there, nor in the table's folder"));
  table.manifest("rows.avro", {{.name = "0.parquet"}, {.name = "0.parquet"}});
  CHECK(mentions_text(table.error(), "the file 's3://bucket/t/data/0.parquet' twice"));
  table.codec = "snappy";
  CHECK(mentions_text(said({.name = "0.parquet"}),
                      "packed with 'snappy'; null, deflate and zstandard are read"));
  CHECK(mentions_text(table.error(), "rows.avro"));
  table.codec = "deflate";
  CHECK(mentions_text(said({.name = "0.parquet"}), "the metadata cannot be unpacked"));
  table.codec = "";
  table.make({.name = "0.parquet"});
  table.list({{.name = "rows.avro", .content = 5}});
  CHECK(mentions_text(table.error(), "content of kind 5"));
  table.list({{.name = "rows.avro", .spec = 3}});
  CHECK(mentions_text(table.error(), "does not have the partition spec 3"));
  table.list({{.name = "rows.avro"}});

  const auto with = [&](std::string& part, const std::string& text) {
    const std::string before = std::exchange(part, text);
    table.metadata();
    part = before;
    return table.error();
  };
  table.version = 4;
  CHECK(mentions_text(with(table.more, ""), "format version 4; 1 to 3 are known"));
  table.version = 3;
  CHECK(mentions_text(with(table.more, ""), "none"));
  table.version = 2;
  CHECK(mentions_text(with(table.schema, R"({"id":1,"name":"i","type":"geometry"})"),
                      "the type 'geometry' of Iceberg"));
  CHECK(mentions_text(with(table.schema, R"_({"id":1,"name":"i","type":"decimal(x)"})_"),
                      "the type 'decimal(x)' of Iceberg"));
  CHECK(mentions_text(with(table.schema, R"({"id":1,"name":"i","type":"long","initial-default":5})"),
                      "'i' has a default value"));
  CHECK(mentions_text(with(table.schema, R"({"id":1,"name":"i"})"), "not as Iceberg writes them"));
  CHECK(mentions_text(with(table.schema, R"({"id":1,"name":"i","type":"string"})"),
                      "is of type int64 in the file"));
  CHECK(mentions_text(with(table.more, ", \"snapshots\": 5"), "not as Iceberg writes them"));
  CHECK(with(table.schema, table.schema + R"(,{"id":2,"name":"u","type":"unknown"})") == "none");
  CHECK(mentions_text(with(table.more, "x"), "not JSON"));
  CHECK(mentions_text(with(table.more, ",\"deep\":" + std::string(1000, '[')), "nested more than 200 deep"));
  // A column `a.b` beside the field b of a struct a.
  CHECK(with(table.schema, R"({"id":1,"name":"a.b","type":"long"},{"id":2,"name":"a","type":{"type":)"
                           R"("struct","fields":[{"id":3,"name":"b","type":"long"}]}})") == "none");
  CHECK(mentions_text(
      with(table.schema, R"({"id":1,"name":"x","type":"long"},{"id":2,"name":"x","type":"long"})"),
      "two columns or fields of structs called 'x'"));
  CHECK(mentions_text(with(table.more, ""), "none"));
}

TEST_CASE("source/iceberg: a partition's value that some files do not have") {
  small_iceberg table;
  table.data("0.parquet");
  table.data("1.parquet");
  table.schema += R"(,{"id":2,"name":"year","type":"int"})";
  table.more = R"(,"partition-spec":[])";
  table.metadata();
  std::string all = text_of_file(table.dir / "metadata/v1.metadata.json");
  const std::string specs = R"("partition-specs":[)";
  all.insert(
      all.find(specs) + specs.size(),
      R"({"spec-id":1,"fields":[{"source-id":2,"field-id":1000,"name":"year","transform":"identity"}]},)");
  write_file(table.dir / "metadata/v1.metadata.json", all);
  table.manifest("0.avro", {{.name = "0.parquet"}});
  table.manifest("1.avro", {{.name = "1.parquet", .part = 2024}});
  table.list({{.name = "0.avro"}, {.name = "1.avro", .spec = 1}});
  CHECK(mentions_text(table.error(), "the file has no column 'year', whose value only its partition says"));
  // A null is what it looks like.
  table.manifest("1.avro", {{.name = "1.parquet"}});
  CHECK(ps::iceberg(table.path()).size() == 20);
}

TEST_CASE("source/iceberg: a partition that does not have the value of its column") {
  small_iceberg table;
  table.data("0.parquet");
  table.manifest("rows.avro", {{.name = "0.parquet", .part = 5}});
  table.list({{.name = "rows.avro"}});
  const auto with = [&](const std::string& number, const std::string& transform) {
    table.spec =
        R"({"source-id":1,"name":"i","field-id":)" + number + R"(,"transform":")" + transform + "\"}";
    table.metadata();
    return table.error();
  };
  CHECK(mentions_text(with("1001", "identity"), "an entry without 'i'"));
  CHECK(with("1001", "void") == "none");
  CHECK(with("1000", "identity") == "none");
  // All columns come from the manifest, and none from the file.
  CHECK(table.numbers() == "5 5 5 5 5 5 5 5 5 5 ");
}

TEST_CASE("source/iceberg: where files are found") {
  small_iceberg table, other;
  table.make({.name = "0.parquet"});
  const std::string whole = "0 1 2 3 4 5 6 7 8 9 ";
  // S3 has several schemes.
  table.manifest("rows.avro", {{.name = "s3a://bucket/t/data/0.parquet"}});
  CHECK(table.numbers() == whole);
  table.manifest("rows.avro", {{.name = "s3://bucket/t2/data/0.parquet"}});
  CHECK(mentions_text(table.error(), "of another file system"));
  other.data("far.parquet");
  for (const char* const scheme : {"file://", "file:", ""}) {
    table.manifest("rows.avro", {{.name = scheme + (other.dir / "data/far.parquet").string()}});
    CHECK(table.numbers() == whole);
    table.manifest("rows.avro", {{.name = scheme + (other.dir / "data/none.parquet").string()}});
    CHECK(mentions_text(table.error(), "none.parquet', which is not there, nor in the table's folder"));
  }
  fs::create_symlink(other.dir / "data", table.dir / "linked");
  table.manifest("rows.avro", {{.name = "s3://bucket/t/linked/far.parquet"}});
  CHECK(table.numbers() == whole);
  CHECK(ps::iceberg("file://" + table.path()).size() == 10);
  CHECK(ps::iceberg("file:" + table.path() + "/metadata/v1.metadata.json").size() == 10);
  CHECK(ps::iceberg(table.path() + "/").size() == 10);
}

TEST_CASE("source/iceberg: the history of a table without a log is that of its current snapshot") {
  small_iceberg table;
  table.make({.name = "0.parquet"});
  const std::string list = R"(,"schema-id":0,"manifest-list":"s3://bucket/t/metadata/list.avro"})";
  table.snapshot = R"("snapshot-id":7,"parent-snapshot-id":5,"timestamp-ms":1000)" + list +
                   R"(,{"snapshot-id":6,"parent-snapshot-id":5,"timestamp-ms":900)" + list +
                   R"(,{"snapshot-id":5,"parent-snapshot-id":1,"timestamp-ms":800)" +
                   list.substr(0, list.size() - 1);
  table.metadata();
  const auto at = [&](std::int64_t time) {
    return ps::iceberg(table.path(), {.timestamp = time}).describe();
  };
  CHECK(mentions_text(at(1000), "snapshot 7)"));
  CHECK(mentions_text(at(999), "snapshot 5)"));
  CHECK(mentions_text(table.error({.timestamp = 799}), "the first that can be read is of 800"));
  table.more =
      R"(,"snapshot-log":[{"snapshot-id":5,"timestamp-ms":800},{"snapshot-id":6,"timestamp-ms":900},)"
      R"({"snapshot-id":5,"timestamp-ms":900},{"snapshot-id":9,"timestamp-ms":950}])";
  table.metadata();
  CHECK(mentions_text(at(949), "snapshot 5)"));  // rolled back at once
  CHECK(mentions_text(table.error({.timestamp = 950}), "the snapshot 9, or not any more"));
}

TEST_CASE("source/iceberg: which table a storage has, and where its files are") {
  small_iceberg table;
  table.make({.name = "s3a://bucket/t/data/0.parquet"});
  const auto error = [](const ps::memory_files& where) {
    return error_of([&] { (void)ps::iceberg(where); });
  };
  const auto called = [&](const std::string& name) {
    return penstock_test::stored_folder(table.dir.path(), name);
  };
  // Where it says that it is, elsewhere, and without a folder.
  for (const char* const name : {"s3://bucket/t", "gs://other/copy", "t", ""}) {
    INFO(name);
    CHECK(ps::iceberg(called(name)).size() == 10);
    CHECK(mentions_text(ps::iceberg(called(name)).describe(),
                        "iceberg('" + std::string(name) + "', snapshot 7)("));
  }
  ps::memory_files two = called("t");
  two.add("u/metadata/v1.metadata.json", "{}");
  CHECK(mentions_text(error(two),
                      "the storage has the metadata of two tables, in 't/metadata' and 'u/metadata'"));
  CHECK(mentions_text(error(ps::memory_files().add("a/b.parquet", "")), "this is no table of Iceberg"));
  CHECK(mentions_text(error(ps::memory_files()), "this is no table of Iceberg"));
  // One metadata file among others, as a catalogue names it.
  const std::string whole = text_of_file(table.dir / "metadata/v1.metadata.json");
  fs::rename(table.dir / "metadata/v1.metadata.json", table.dir / "metadata/00007-x.metadata.json");
  write_file(table.dir / "metadata/00007-y.metadata.json", whole);
  CHECK(mentions_text(error(called("t")), "the table has 2 metadata files of number 7"));
  CHECK(ps::iceberg(ps::file({(table.dir / "metadata/00007-y.metadata.json").string().c_str()})).size() ==
        10);
  // A file that is not there, and one of another file system.
  fs::remove(table.dir / "metadata/00007-y.metadata.json");
  fs::remove(table.dir / "data/0.parquet");
  CHECK(mentions_text(error(called("gs://other/copy")), "[file gs://other/copy/data/0.parquet]"));
  table.manifest("rows.avro", {{.name = "hdfs://bucket/0.parquet"}});
  CHECK(mentions_text(error(called("t")),
                      "the table has the file 'hdfs://bucket/0.parquet' of another file system"));
}

TEST_CASE("source/iceberg: dataset takes the metadata, and says so where it does not know them") {
  small_iceberg table;
  table.make({.name = "s3://bucket/t/data/0.parquet"});
  const std::string path = table.dir.path().string();
  const auto found = ps::dataset(path, ps::parquet_format{}, ps::iceberg_format{});
  CHECK(std::visit([](const auto& source) { return source.size(); }, found) == 10);
  CHECK(mentions_text(error_of([&] { (void)ps::dataset(path, ps::parquet_format{}); }),
                      "this looks like iceberg: include <penstock/source/iceberg.hpp>"));
}

TEST_CASE("source/iceberg: which metadata file of a folder is taken") {
  small_iceberg table;
  table.make({.name = "0.parquet"});
  const auto shown = [&](const std::string& path) { return ps::iceberg(path).describe(); };
  const auto id = [&](const std::string& number, const std::string& name) {
    const std::string before = table.snapshot;
    table.snapshot.replace(table.snapshot.find(":7"), 2, ":" + number);
    table.more = ",\"current-snapshot-id\":" + number;  // the last one counts
    table.metadata(name);
    table.snapshot = before;
  };
  id("10", "v2.metadata.json");
  id("11", "00010-some-uuid.metadata.json");
  CHECK(mentions_text(shown(table.path()), "snapshot 11)"));
  CHECK(mentions_text(shown((table.dir / "metadata/v2.metadata.json").string()), "snapshot 10)"));
  write_file(table.dir / "metadata/version-hint.text", "1\n");
  CHECK(mentions_text(shown(table.path()), "snapshot 10)"));  // the next one is there
  write_file(table.dir / "metadata/version-hint.text", "00010-some-uuid");
  CHECK(mentions_text(shown(table.path()), "snapshot 11)"));
  write_file(table.dir / "metadata/version-hint.text", "5");
  CHECK(mentions_text(table.error(), "the newest metadata have the number 5, and there are none"));
  write_file(table.dir / "metadata/version-hint.text", "../v2");
  CHECK(mentions_text(table.error(), "the newest metadata are in '../v2.metadata.json', which is not there"));
  fs::remove(table.dir / "metadata/version-hint.text");
  id("12", "00010-other-uuid.metadata.json");
  CHECK(mentions_text(table.error(), "the table has 2 metadata files of number 10"));
  CHECK(
      mentions_text(error_of([&] { (void)ps::iceberg((table.dir / "metadata/v9.metadata.json").string()); }),
                    "cannot open: No such file"));
}

TEST_CASE("source/iceberg: metadata that are cut off or damaged are an error, or a table") {
  small_iceberg table;
  table.make({.name = "0.parquet"});
  ps::rng random(1, 2, 3);
  const auto place = table.vector("v.puffin", {1, 3, 9});
  table.data("1.parquet");
  table.deletes("p.parquet", {{"1.parquet", 0}, {"1.parquet", 1}});
  table.manifest("rows.avro", {{.name = "0.parquet"}, {.name = "1.parquet"}});
  table.manifest("deletes.avro", {{.name = "v.puffin",
                                   .content = 1,
                                   .format = "PUFFIN",
                                   .rows = 3,
                                   .only = "s3://bucket/t/data/0.parquet",
                                   .vector = place},
                                  {.name = "p.parquet", .content = 1}});
  table.list({{.name = "rows.avro"}, {.name = "deletes.avro", .content = 1}});
  const std::string left = "0 2 4 5 6 7 8 2 3 4 5 6 7 8 9 ";
  CHECK(table.numbers() == left);
  for (const char* const name : {"metadata/v1.metadata.json", "metadata/list.avro", "metadata/rows.avro",
                                 "metadata/deletes.avro", "data/v.puffin", "data/p.parquet"}) {
    const fs::path path = table.dir / name;
    const std::string whole = text_of_file(path);
    for (std::size_t size = 0; size < whole.size(); size += 7) {
      INFO(name << " " << size);
      write_file(path, whole.substr(0, size));
      const std::string said = table.error();
      // A container without blocks is whole, and so is a vector without what stands behind it.
      CHECK((mentions_text(said, name) || (said == "none" && size + 60 > whole.size() / 2)));
    }
    for (int i = 0; i < 700; ++i) {
      std::string damaged = whole;
      char& byte = damaged[static_cast<std::size_t>(random.below(whole.size()))];
      byte = static_cast<char>(byte ^ (1 << random.below(8)));
      write_file(path, damaged);
      (void)table.error();
    }
    write_file(path, whole);
  }
  CHECK(table.numbers() == left);
}
