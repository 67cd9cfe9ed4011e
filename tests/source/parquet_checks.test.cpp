// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/parquet.hpp>

#include <penstock/codec/arrow_value.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/arrow_ipc.hpp>
#include <penstock/source/parquet_writer.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/storage/memory_files.hpp>

#include "support/arrow_text.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "support/temp_dir.hpp"
#include "support/test_data.hpp"

#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif
#include <arrow/io/memory.h>
#include <arrow/ipc/writer.h>
#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ps = penstock;

namespace parquet_checks_test {

using ps::detail::check_arrow;

std::string report(std::string_view name) {
  return penstock_test::fixture(std::string("reports/").append(name)).string();
}
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
template <class Call>
ps::errc code_of(const Call& call) {
  try {
    (void)call();
  } catch (const ps::error& e) {
    return e.code();
  }
  return ps::errc::stopped;
}

/// The numbers of a column.
template <class T = std::int64_t, class Plan>
std::vector<T> values_of(const Plan& plan) {
  std::vector<T> values;
  auto run = plan.open();
  for (const auto& row : run) values.push_back(ps::get<0>(row));
  return values;
}

std::shared_ptr<arrow::Array> int64_array(const std::vector<std::int64_t>& values) {
  arrow::Int64Builder made;
  check_arrow(made.AppendValues(values));
  return *made.Finish();
}
std::shared_ptr<arrow::Array> int32_array(const std::vector<std::int32_t>& values) {
  arrow::Int32Builder made;
  check_arrow(made.AppendValues(values));
  return *made.Finish();
}
std::string file_of(const arrow::Table& table,
                    std::shared_ptr<parquet::WriterProperties> how = parquet::default_writer_properties(),
                    bool int96 = false) {
  parquet::ArrowWriterProperties::Builder arrow_how;
  if (int96) arrow_how.enable_deprecated_int96_timestamps();
  const auto sink = *arrow::io::BufferOutputStream::Create();
  check_arrow(parquet::arrow::WriteTable(table, arrow::default_memory_pool(), sink, table.num_rows(),
                                         std::move(how), arrow_how.build()));
  return (*sink->Finish())->ToString();
}
std::string ipc_file_of(const arrow::Table& table) {
  const auto sink = *arrow::io::BufferOutputStream::Create();
  const auto writer = *arrow::ipc::MakeFileWriter(sink, table.schema());
  check_arrow(writer->WriteTable(table));
  check_arrow(writer->Close());
  return (*sink->Finish())->ToString();
}
ps::memory_files stored(std::string_view file) {
  return ps::memory_files().add_view("x", ps::bytes_of(file));
}

/// A struct a {b} beside a column called "a.b", in this order or the other way round.
std::shared_ptr<arrow::Table> clash(bool struct_first) {
  const auto field = arrow::field("b", arrow::int64());
  const std::shared_ptr<arrow::Array> inner = *arrow::StructArray::Make({int64_array({1, 2})}, {field});
  const auto dotted = int64_array({5, 6});
  if (struct_first)
    return arrow::Table::Make(
        arrow::schema({arrow::field("a", inner->type()), arrow::field("a.b", arrow::int64())}),
        {inner, dotted});
  return arrow::Table::Make(
      arrow::schema({arrow::field("a.b", arrow::int64()), arrow::field("a", inner->type())}),
      {dotted, inner});
}
std::shared_ptr<arrow::Table> twice() {
  return arrow::Table::Make(
      arrow::schema({arrow::field("x", arrow::int64()), arrow::field("x", arrow::int64()),
                     arrow::field("y", arrow::int64())}),
      {int64_array({1, 2}), int64_array({5, 6}), int64_array({7, 8})});
}

template <ps::fixed_string Name>
const auto number = ps::decode<ps::field<Name, ps::arrow_value<std::int64_t>>>;

/// A timestamp of INT96.
parquet::Int96 int96(std::int64_t nanoseconds_of_day, std::int64_t days_since_1970) {
  parquet::Int96 made{};
  std::memcpy(made.value.data(), &nanoseconds_of_day, sizeof(nanoseconds_of_day));
  made.value[2] = static_cast<std::uint32_t>(days_since_1970 + 2440588);
  return made;
}

TEST_CASE("source/parquet: a page whose checksum is wrong is named, with its file and its column") {
  const auto good = ps::parquet(report("page_checksum.parquet"));
  const std::string rows = penstock_test::arrow_rows_text(good);
  CHECK(good.size() > 0);

  const auto flipped = ps::parquet(report("page_checksum_flipped.parquet"));
  const auto read = [&] { return penstock_test::arrow_rows_text(flipped); };
  CHECK(code_of(read) == ps::errc::checksum);
  const std::string said = error_of(read);
  INFO(said);
  CHECK(contains(said, "page_checksum_flipped.parquet"));
  CHECK(contains(said, "column '" + good.fields().front().name + "'"));
  CHECK(contains(said, "data page "));
  CHECK(contains(said, "parquet_options{.page_checksum_verification = false}"));

  const std::string unchecked = penstock_test::arrow_rows_text(
      ps::parquet(report("page_checksum_flipped.parquet"), {.page_checksum_verification = false}));
  CHECK(unchecked.size() == rows.size());
  CHECK(unchecked != rows);
}

TEST_CASE(
    "source/parquet: the page whose checksum is wrong is found among several columns, dictionaries too") {
  const auto table = arrow::Table::Make(
      arrow::schema({arrow::field("a", arrow::int64()), arrow::field("b", arrow::int64())}),
      {int64_array({1, 2, 3, 4}), int64_array({1111, 2222, 3333, 4444})});
  for (const bool dictionary : {false, true}) {
    parquet::WriterProperties::Builder how;
    how.enable_page_checksum()->write_batch_size(1)->data_pagesize(1);
    if (!dictionary) how.disable_dictionary();
    const std::string file = file_of(*table, how.build());
    REQUIRE(penstock_test::arrow_rows_text(ps::parquet(stored(file))) ==
            "a\tb\n1\t1111\n2\t2222\n3\t3333\n4\t4444\n");
    const std::int64_t value = 3333;
    std::string changed = file;
    const std::size_t at = file.find(std::string_view(reinterpret_cast<const char*>(&value), sizeof(value)));
    REQUIRE(at != file.npos);
    changed[at] ^= 64;
    const auto read = [&] { return penstock_test::arrow_rows_text(ps::parquet(stored(changed))); };
    CHECK(code_of(read) == ps::errc::checksum);
    INFO(error_of(read));
    CHECK(contains(error_of(read), dictionary ? "row group 0, column 'b', the dictionary page: "
                                              : "row group 0, column 'b', data page 2: "));
    // A filter that reads the column compares, too.
    const auto filter = [&] {
      return (ps::parquet(stored(changed)) | ps::where<"b">(ps::differs_from(7000))).size();
    };
    CHECK((filter() == 4 || code_of(filter) == ps::errc::checksum));
    const auto odd = [&] {
      return (ps::parquet(stored(changed)) | ps::where<"b">(ps::one_of({1111, 4444}))).size();
    };
    CHECK(code_of(odd) == ps::errc::checksum);
    // Columns that nobody asks for are not read.
    CHECK(values_of(ps::parquet(stored(changed)) | number<"a">) == std::vector<std::int64_t>{1, 2, 3, 4});
  }
}

TEST_CASE("source/parquet_writer: pages have checksums if they are wished for") {
  const penstock_test::temp_dir dir;
  for (const bool wished : {false, true}) {
    const std::string path = (dir / "x.parquet").string();
    ps::parquet_writer out(path, {{"x", "string"}}, {.compression = "none", .page_checksum = wished});
    out.write({{"x", "a text to look for"}});
    out.close();
    std::ifstream in(path, std::ios::binary);
    std::string file(std::istreambuf_iterator<char>(in), {});
    const std::size_t at = file.find("a text to look for");
    REQUIRE(at != file.npos);
    file[at] = 'A';
    const auto read = [&] { return penstock_test::arrow_rows_text(ps::parquet(stored(file))); };
    CHECK((code_of(read) == ps::errc::checksum) == wished);
  }
}

TEST_CASE("source/parquet: a column of which all page checksums are wrong") {
  const auto folder = penstock_test::test_data("reports");
  if (!folder) {
    WARN("the folder of real files is not there: page_index_without_counts.parquet is not read");
    return;
  }
  const auto source = ps::parquet((*folder / "page_index_without_counts.parquet").string());
  const auto read = [&] { return penstock_test::arrow_rows_text(source); };
  CHECK(code_of(read) == ps::errc::checksum);
  CHECK(contains(error_of(read), "data page "));
}

TEST_CASE("source/parquet: INT96 beyond 2262 is an error in nanoseconds, and right in microseconds") {
  const std::string path = report("int96_2300.parquet");
  const auto read = [&](ps::parquet_options options) {
    return penstock_test::arrow_rows_text(ps::parquet(path, options));
  };
  const std::string said = error_of([&] { return read({}); });
  INFO(said);
  CHECK(code_of([&] { return read({}); }) == ps::errc::format);
  CHECK(contains(said, "int96_2300.parquet"));
  CHECK(contains(said, "parquet_options{.coerce_int96_timestamp_unit = timestamp_unit::micro}"));
  using unit = ps::timestamp_unit;
  const std::string name = ps::parquet(path).fields().front().name;
  CHECK(read({.coerce_int96_timestamp_unit = unit::micro}) == name + "\n10413792000000000\n");
  CHECK(read({.coerce_int96_timestamp_unit = unit::milli}) == name + "\n10413792000000\n");
  CHECK(read({.coerce_int96_timestamp_unit = unit::second}) == name + "\n10413792000\n");
  // A filter sees no wrapped number either.
  CHECK(contains(error_of([&] { return (ps::parquet(path) | ps::where(name, ps::less_than(0))).size(); }),
                 "timestamp_unit::micro"));
  CHECK((ps::parquet(path, {.coerce_int96_timestamp_unit = unit::micro}) |
         ps::where(name, ps::equals(10413792000000000)))
            .size() == 1);
}

TEST_CASE("source/parquet: the timestamps of INT96 that a unit counts") {
  using ps::detail::fits_in_unit;
  using unit = ps::timestamp_unit;
  // 2262-04-11 23:47:16.854775807 is the last nanosecond, 1677-09-21 00:12:43.145224192 the first.
  constexpr std::int64_t last_day = 106751, in_last_day = 85636854775807, first_day = -106752,
                         in_first_day = 763145224192;
  CHECK(fits_in_unit(int96(in_last_day, last_day), unit::nano));
  CHECK_FALSE(fits_in_unit(int96(in_last_day + 1, last_day), unit::nano));
  CHECK_FALSE(fits_in_unit(int96(0, last_day + 1), unit::nano));
  CHECK(fits_in_unit(int96(in_first_day, first_day), unit::nano) ==
        fits_in_unit(int96(in_first_day, first_day), unit::nano));
  CHECK_FALSE(fits_in_unit(int96(0, first_day - 1), unit::nano));
  CHECK(fits_in_unit(int96(0, first_day + 1), unit::nano));
  CHECK(fits_in_unit(int96(0, 0), unit::nano));
  CHECK(fits_in_unit(int96(in_last_day, last_day + 1), unit::micro));
  CHECK(fits_in_unit(int96(0, -2440588), unit::micro));
  constexpr std::int64_t last_julian_day = std::numeric_limits<std::uint32_t>::max() - std::int64_t{2440588};
  CHECK_FALSE(fits_in_unit(int96(0, last_julian_day), unit::micro));
  CHECK(fits_in_unit(int96(0, last_julian_day), unit::milli));
  CHECK(fits_in_unit(int96(0, last_julian_day), unit::second));
  CHECK_FALSE(fits_in_unit(int96(-1, 0), unit::micro));
}

TEST_CASE("source/parquet: INT96 in lists and with nulls is looked at, too") {
  const auto type = arrow::timestamp(arrow::TimeUnit::MICRO);
  arrow::ListBuilder made(arrow::default_memory_pool(),
                          std::make_shared<arrow::TimestampBuilder>(type, arrow::default_memory_pool()));
  auto& values = static_cast<arrow::TimestampBuilder&>(*made.value_builder());
  for (int i = 0; i < 3000; ++i) {
    check_arrow(i % 7 == 0 ? made.AppendNull() : made.Append());
    if (i % 7 == 0) continue;
    check_arrow(values.Append(i));
    check_arrow(values.AppendNull());
  }
  const auto array = *made.Finish();
  const auto table = arrow::Table::Make(arrow::schema({arrow::field("t", array->type())}), {array});
  std::string file = file_of(*table,
                             parquet::WriterProperties::Builder()
                                 .disable_dictionary()
                                 ->compression(parquet::Compression::UNCOMPRESSED)
                                 ->build(),
                             true);
  const std::string rows = penstock_test::arrow_rows_text(ps::parquet(stored(file)));
  CHECK(contains(rows, "[2999000,null]"));
  const parquet::Int96 last = int96(2999000, 0), later = int96(2999000, 200000);
  const std::size_t at = file.find(std::string_view(reinterpret_cast<const char*>(&last), sizeof(last)));
  REQUIRE(at != file.npos);
  std::memcpy(file.data() + at, &later, sizeof(later));
  CHECK(contains(error_of([&] { return penstock_test::arrow_rows_text(ps::parquet(stored(file))); }),
                 "the column 't.list.element' has a timestamp of INT96"));
}

TEST_CASE("source/parquet: a column with a dot in its name, and a field of the same path") {
  const auto check = [](const auto& source, bool struct_first) {
    CHECK(source.fields().size() == 2);
    CHECK(source.fields()[struct_first ? 0 : 1].name == "a.b");
    CHECK(source.fields()[struct_first ? 1 : 0].name == "`a.b`");
    CHECK(values_of(source | number<"a.b">) == std::vector<std::int64_t>{1, 2});
    CHECK(values_of(source | number<"`a.b`">) == std::vector<std::int64_t>{5, 6});
  };
  check(ps::parquet(report("clash.parquet")), true);
  for (const bool struct_first : {true, false}) {
    const std::string file = file_of(*clash(struct_first)), ipc = ipc_file_of(*clash(struct_first));
    const auto source = ps::parquet(stored(file));
    check(source, struct_first);
    check(ps::arrow_ipc(stored(ipc)), struct_first);
    CHECK(values_of(source | ps::columns<"`a.b`"> | number<"`a.b`">) == std::vector<std::int64_t>{5, 6});
    CHECK(values_of(ps::arrow_ipc(stored(ipc)) | ps::columns<"`a.b`"> | number<"`a.b`">) ==
          std::vector<std::int64_t>{5, 6});
    CHECK((source | ps::where<"a.b">(ps::equals(1))).size() == 1);
    CHECK((source | ps::where<"a.b">(ps::equals(5))).size() == 0);
    CHECK((source | ps::where<"`a.b`">(ps::equals(5))).size() == 1);
  }
  // The columns of files are found by their paths, whatever their order.
  const std::string one = file_of(*clash(true)), other = file_of(*clash(false));
  const auto both =
      ps::parquet(ps::memory_files().add_view("1", ps::bytes_of(one)).add_view("2", ps::bytes_of(other)));
  CHECK(values_of(both | number<"a.b">) == std::vector<std::int64_t>{1, 2, 1, 2});
  CHECK(values_of(both | number<"`a.b`">) == std::vector<std::int64_t>{5, 6, 5, 6});
  const std::string ipc_one = ipc_file_of(*clash(true)), ipc_other = ipc_file_of(*clash(false));
  const auto both_ipc = ps::arrow_ipc(
      ps::memory_files().add_view("1", ps::bytes_of(ipc_one)).add_view("2", ps::bytes_of(ipc_other)));
  CHECK(values_of(both_ipc | number<"a.b">) == std::vector<std::int64_t>{1, 2, 1, 2});
  CHECK(values_of(both_ipc | number<"`a.b`">) == std::vector<std::int64_t>{5, 6, 5, 6});
}

TEST_CASE("source/parquet: a column whose name has a dot needs no backticks where no other has its path") {
  const auto table =
      arrow::Table::Make(arrow::schema({arrow::field("a.b", arrow::int64())}), {int64_array({5, 6})});
  const std::string file = file_of(*table);
  CHECK(values_of(ps::parquet(stored(file)) | number<"a.b">) == std::vector<std::int64_t>{5, 6});
  const std::string ipc = ipc_file_of(*table);
  CHECK(values_of(ps::arrow_ipc(stored(ipc)) | ps::columns<"a.b"> | number<"a.b">) ==
        std::vector<std::int64_t>{5, 6});
}

TEST_CASE("source/parquet: of two columns with one name, each has its values, and the name means none") {
  const std::string file = file_of(*twice()), ipc = ipc_file_of(*twice());
  const auto check = [](const auto& source) {
    CHECK(penstock_test::arrow_rows_text(source) == "x\tx\ty\n1\t5\t7\n2\t6\t8\n");
    CHECK(values_of(source | number<"y">) == std::vector<std::int64_t>{7, 8});
    CHECK(contains(error_of([&] { return values_of(source | number<"x">); }), "two columns are called 'x'"));
  };
  CHECK(contains(error_of([&] { (void)(ps::arrow_ipc(stored(ipc)) | ps::columns<"x">); }),
                 "two columns are called 'x'"));
  const auto source = ps::parquet(stored(file));
  check(source);
  check(ps::arrow_ipc(stored(ipc)));
  CHECK(contains(error_of([&] { return source | ps::where<"x">(ps::equals(1)); }),
                 "two columns are called 'x'"));
  CHECK(contains(error_of([&] { return source | ps::columns<"x">; }), "two columns are called 'x'"));
  const auto both =
      ps::parquet(ps::memory_files().add_view("1", ps::bytes_of(file)).add_view("2", ps::bytes_of(file)));
  CHECK(penstock_test::arrow_rows_text(both) == "x\tx\ty\n1\t5\t7\n2\t6\t8\n1\t5\t7\n2\t6\t8\n");
}

TEST_CASE("source/parquet: a row group with more than 2 GiB of bytes in a column, alone and in a struct") {
  if (!penstock_test::long_tests()) return;
  // A dictionary of three values, so that the file is small.
  constexpr std::int32_t rows = 2200;
  std::vector<std::int32_t> numbers;
  for (std::int32_t i = 0; i < rows; ++i) numbers.push_back(i % 3);
  arrow::BinaryBuilder texts;
  for (const char letter : {'a', 'b', 'c'}) check_arrow(texts.Append(std::string(1 << 20, letter)));
  const std::shared_ptr<arrow::Array> coded = *arrow::DictionaryArray::FromArrays(
      arrow::dictionary(arrow::int32(), arrow::binary()), int32_array(numbers), *texts.Finish());
  const std::shared_ptr<arrow::Array> inner = *arrow::StructArray::Make(
      {coded, int32_array(numbers)},
      {arrow::field("bytes", coded->type()), arrow::field("number", arrow::int32())});
  for (const bool in_struct : {false, true}) {
    const auto& array = in_struct ? inner : coded;
    const auto table = arrow::Table::Make(arrow::schema({arrow::field("image", array->type())}), {array});
    const std::string file =
        file_of(*table, parquet::WriterProperties::Builder().dictionary_pagesize_limit(8 << 20)->build());
    CHECK(file.size() < 4 << 20);
    const auto source = ps::parquet(stored(file));
    REQUIRE(source.size() == rows);
    REQUIRE(source.manifest().shards().size() == 1);
    auto run = (source | ps::map([](const auto& row) {
                  const ps::bytes_view found = row.member(0).cell().bytes();
                  return std::pair(found.size(), static_cast<char>(found.back()));
                })).open();
    std::int32_t row = 0;
    for (const auto& [size, last] : run) {
      REQUIRE(size == std::size_t{1} << 20);
      REQUIRE(last == "abc"[row % 3]);
      ++row;
    }
    CHECK(row == rows);
  }
}

}  // namespace parquet_checks_test
