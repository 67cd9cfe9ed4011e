// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/parquet.hpp>

#include <penstock/core/random.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/delta.hpp>
#include <penstock/source/parquet_writer.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/storage/memory_files.hpp>

#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "support/test_data.hpp"
#include "support/thrift_places.hpp"

#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif
#include <arrow/io/memory.h>
#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ps = penstock;

namespace parquet_where_test {

constexpr std::int64_t rows = 240, group_rows = 60, page_rows = 10;

/// Arrays of one type, made one value after another.
template <class Builder, class Append>
std::shared_ptr<arrow::Array> array_of(const std::shared_ptr<arrow::DataType>& type, Append&& append) {
  std::unique_ptr<arrow::ArrayBuilder> made;
  ps::detail::check_arrow(arrow::MakeBuilder(arrow::default_memory_pool(), type, &made));
  for (std::int64_t row = 0; row < rows; ++row) append(static_cast<Builder&>(*made), row);
  std::shared_ptr<arrow::Array> array;
  ps::detail::check_arrow(made->Finish(&array));
  return array;
}

/// Columns of many types, whose values grow with the rows, with nulls here and there and in whole pages.
std::shared_ptr<arrow::Table> table_of(ps::rng& random) {
  using ps::detail::check_arrow;
  const auto is_null = [&](std::int64_t row) { return row / page_rows % 5 == 3 || random.below(6) == 0; };
  const auto number = [&](std::int64_t row) {
    return row / 3 - 20 + static_cast<std::int64_t>(random.below(5));
  };
  const auto numbers = [&]<class Builder>(const Builder*, const std::shared_ptr<arrow::DataType>& type) {
    return array_of<Builder>(type, [&](Builder& to, std::int64_t row) {
      check_arrow(is_null(row) ? to.AppendNull()
                               : to.Append(static_cast<typename Builder::value_type>(number(row))));
    });
  };
  std::vector<std::shared_ptr<arrow::Field>> fields;
  std::vector<std::shared_ptr<arrow::Array>> arrays;
  const auto add = [&](std::string name, std::shared_ptr<arrow::Array> array, bool nullable = true) {
    fields.push_back(arrow::field(std::move(name), array->type(), nullable));
    arrays.push_back(std::move(array));
  };
  constexpr arrow::Int64Builder* whole = nullptr;
  add("i", numbers(whole, arrow::int64()));
  add("few", array_of<arrow::Int64Builder>(arrow::int64(), [&](auto& to, std::int64_t row) {
        check_arrow(row < group_rows ? to.AppendNull() : to.Append(7));
      }));
  add("must",
      array_of<arrow::Int32Builder>(arrow::int32(),
                                    [&](auto& to, std::int64_t row) {
                                      check_arrow(to.Append(static_cast<std::int32_t>(number(row))));
                                    }),
      false);
  constexpr arrow::UInt32Builder* positive = nullptr;
  add("u", numbers(positive, arrow::uint32()));
  add("d", array_of<arrow::DoubleBuilder>(arrow::float64(), [&](auto& to, std::int64_t row) {
        const bool nan = random.below(8) == 0;
        check_arrow(is_null(row) ? to.AppendNull()
                                 : to.Append(nan ? std::numeric_limits<double>::quiet_NaN()
                                                 : static_cast<double>(number(row)) / 2));
      }));
  add("s", array_of<arrow::StringBuilder>(arrow::utf8(), [&](auto& to, std::int64_t row) {
        check_arrow(is_null(row) ? to.AppendNull() : to.Append(std::to_string(1000 + number(row))));
      }));
  add("b", array_of<arrow::BooleanBuilder>(arrow::boolean(), [&](auto& to, std::int64_t row) {
        check_arrow(is_null(row) ? to.AppendNull() : to.Append(number(row) > 20));
      }));
  const auto inner = arrow::struct_({arrow::field("x", arrow::int64())});
  add("st", array_of<arrow::StructBuilder>(inner, [&](auto& to, std::int64_t row) {
        auto& x = static_cast<arrow::Int64Builder&>(*to.field_builder(0));
        if (random.below(5) == 0) return check_arrow(to.AppendNull());
        check_arrow(to.Append());
        check_arrow(is_null(row) ? x.AppendNull() : x.Append(number(row)));
      }));
  const auto pair = arrow::struct_({arrow::field("a", arrow::int32()), arrow::field("b", arrow::utf8())});
  add("ls", array_of<arrow::ListBuilder>(arrow::list(pair), [&](auto& to, std::int64_t row) {
        if (is_null(row)) return check_arrow(to.AppendNull());
        check_arrow(to.Append());
        auto& one = static_cast<arrow::StructBuilder&>(*to.value_builder());
        for (std::uint64_t i = random.below(3); i != 0; --i) {
          check_arrow(one.Append());
          check_arrow(static_cast<arrow::Int32Builder&>(*one.field_builder(0)).Append(1));
          check_arrow(static_cast<arrow::StringBuilder&>(*one.field_builder(1)).Append("x"));
        }
      }));
  add("m",
      array_of<arrow::MapBuilder>(arrow::map(arrow::utf8(), arrow::int32()), [&](auto& to, std::int64_t row) {
        if (is_null(row)) return check_arrow(to.AppendNull());
        check_arrow(to.Append());
        if (random.below(2) == 0) return;
        check_arrow(static_cast<arrow::StringBuilder&>(*to.key_builder()).Append("k"));
        check_arrow(static_cast<arrow::Int32Builder&>(*to.item_builder()).Append(5));
      }));
  add("l", array_of<arrow::ListBuilder>(arrow::list(arrow::int64()), [&](auto& to, std::int64_t row) {
        if (is_null(row)) return check_arrow(to.AppendNull());
        check_arrow(to.Append());
        auto& value = static_cast<arrow::Int64Builder&>(*to.value_builder());
        for (std::uint64_t i = random.below(3); i != 0; --i)
          check_arrow(random.below(3) == 0 ? value.AppendNull() : value.Append(number(row)));
      }));
  return arrow::Table::Make(arrow::schema(std::move(fields)), std::move(arrays));
}

/// A file with or without statistics and an index of pages.
std::string file_of(const std::shared_ptr<arrow::Table>& table, bool statistics, bool index) {
  parquet::WriterProperties::Builder how;
  how.write_batch_size(page_rows)->data_pagesize(1)->disable_dictionary();
  if (!statistics) how.disable_statistics();
  if (index) how.enable_write_page_index();
  const auto sink = *arrow::io::BufferOutputStream::Create();
  ps::detail::check_arrow(
      parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), sink, group_rows, how.build()));
  return (*sink->Finish())->ToString();
}

/// Makes claims of a file untrue in ways that show: counts that are negative or larger than the rows, bounds
/// in the wrong order, pages of nothing but nulls that have values or the other way round.
std::size_t damage(std::string& file, ps::rng& random) {
  using penstock_test::thrift_place;
  using penstock_test::thrift_places;
  std::size_t changed = 0;
  const auto spoil_count = [&](const thrift_place& place) {
    REQUIRE(place.end == place.begin + 1);
    constexpr char counts[] = {1, 3, 127, 126};  // -1, -2, -64 and 63
    file[place.begin] = counts[random.below(4)];
    ++changed;
  };
  const auto swap = [&](const thrift_place& a, const thrift_place& b) {
    if (a.end - a.begin != b.end - b.begin) return;
    if (file.compare(a.begin, a.end - a.begin, file, b.begin, b.end - b.begin) == 0) return;
    std::swap_ranges(file.begin() + static_cast<std::ptrdiff_t>(a.begin),
                     file.begin() + static_cast<std::ptrdiff_t>(a.end),
                     file.begin() + static_cast<std::ptrdiff_t>(b.begin));
    ++changed;
  };
  const auto find = [](const std::vector<thrift_place>& all, std::initializer_list<std::size_t> path) {
    for (const thrift_place& one : all)
      if (one.is_at(path)) return &one;
    return static_cast<const thrift_place*>(nullptr);
  };
  std::uint32_t footer_size = 0;
  std::memcpy(&footer_size, file.data() + file.size() - 8, sizeof(footer_size));
  thrift_places footer(file, file.size() - 8 - footer_size);
  for (std::size_t group = 0; group < rows / group_rows; ++group)
    for (std::size_t column = 0; column < 32; ++column) {
      const std::uint64_t what = random.below(3);
      const auto* const count = find(footer.found, {4, group, 1, column, 3, 12, 3});
      const auto* const low = find(footer.found, {4, group, 1, column, 3, 12, 6});
      const auto* const high = find(footer.found, {4, group, 1, column, 3, 12, 5});
      if (what == 0 && count != nullptr) spoil_count(*count);
      if (what == 1 && low != nullptr && high != nullptr) swap(*low, *high);
      const auto* const at = find(footer.found, {4, group, 1, column, 6});
      if (at == nullptr) continue;
      const thrift_places index(file, static_cast<std::size_t>(footer.number(*at)));
      const std::size_t page = random.below(group_rows / page_rows);
      const auto* const nulls = find(index.found, {5, page});
      const auto* const is_null = find(index.found, {1, page});
      const auto* const least = find(index.found, {2, page});
      const auto* const maximum = find(index.found, {3, page});
      if (nulls == nullptr || is_null == nullptr || least == nullptr || maximum == nullptr) continue;
      switch (random.below(4)) {
        case 0:
          spoil_count(*nulls);
          break;
        case 1:
          file[is_null->begin] ^= 3;  // 1 is true, 2 is false
          ++changed;
          break;
        case 2:
          swap(*least, *maximum);
          break;
        default:
          break;
      }
    }
  return changed;
}

ps::memory_files storage_of(const std::vector<std::string>& files) {
  ps::memory_files made;
  for (std::size_t i = 0; i < files.size(); ++i)
    made.add_view(std::to_string(i) + ".parquet", ps::bytes_of(files[i]));
  return made;
}

template <class Source>
std::vector<std::string> keys_of(const Source& source) {
  std::vector<std::string> keys;
  auto run = (source | ps::map([](const auto& row) { return std::string(row.key()); })).open();
  for (const auto& key : run) keys.push_back(key);
  return keys;
}

/// The rows that a filter leaves, found by looking at all of them.
template <class Source>
std::vector<std::string> scanned(const Source& source, const ps::column_filter& filter,
                                 const ps::arrow_type& type) {
  const ps::detail::bound_filter bound(filter, type);
  std::vector<std::string> keys;
  auto run = (source | ps::map([&](const auto& row) {
                return std::pair(std::string(row.key()),
                                 bound.holds(row.member(row.place_of(filter.column)).cell()));
              })).open();
  for (const auto& [key, holds] : run)
    if (holds) keys.push_back(key);
  return keys;
}

ps::column_test test_of(ps::rng& random, std::string_view column) {
  using kind = ps::column_test::kind;
  if (column == "ls" || column == "m" || column == "l" || random.below(4) == 0)
    return {random.below(2) == 0 ? kind::null : kind::not_null, {}};
  const auto value = [&]() -> ps::column_constant {
    const auto number = static_cast<std::int64_t>(random.below(100)) - 30;
    if (column == "s") return std::to_string(1000 + number);
    if (column == "b") return number > 20;
    if (random.below(4) == 0) return static_cast<double>(number) / 2;
    return number;
  };
  constexpr kind kinds[] = {kind::equal,   kind::differ,   kind::less,    kind::at_most,
                            kind::greater, kind::at_least, kind::between, kind::one_of};
  const kind what = kinds[random.below(8)];
  std::vector<ps::column_constant> values{value()};
  if (what == kind::between || what == kind::one_of) values.push_back(value());
  return {what, std::move(values)};
}

/// The files' columns as those of a table, which may lack some of them in some files.
ps::detail::table_facts table_of_all(const ps::arrow_type& schema, std::size_t files) {
  ps::detail::table_facts made;
  made.schema = schema;
  made.part_values.resize(files);
  made.says = "test()";
  return made;
}

TEST_CASE("source/parquet: where chooses the rows that a look at all of them chooses, whatever files claim") {
  constexpr std::string_view columns[] = {"i", "few", "must", "u", "d", "s", "b", "st.x", "ls", "m", "l"};
  const int rounds = penstock_test::long_tests() ? 40 : 6;
  std::size_t damaged = 0;
  for (int seed = 0; seed < rounds; ++seed) {
    ps::rng random(static_cast<std::uint64_t>(seed), 5, 7);
    const auto table = table_of(random);
    std::vector<std::string> files{file_of(table, true, true), file_of(table, false, false),
                                   file_of(table, true, false), file_of(table, true, true)};
    damaged += damage(files[3], random);
    files.push_back(files[2]);
    damaged += damage(files[4], random);
    // A file from before most of the columns were added.
    const auto old = *table->SelectColumns({2});
    files.push_back(file_of(old, true, true));
    const ps::arrow_type schema = ps::parquet(storage_of({files[0]})).schema();
    const auto facts = table_of_all(schema, files.size());
    const ps::parquet_source<ps::memory_files> all(storage_of(files), {}, &facts);
    const std::vector<ps::source_field> fields = all.fields();
    std::vector<const ps::arrow_type*> types;
    for (const ps::arrow_type& one : schema.children)
      types.push_back(one.name == "st" ? &one.children.front() : &one);
    for (std::size_t i = 0; i < std::size(columns); ++i)
      for (int k = 0; k < 8; ++k) {
        ps::column_filter filter{std::string(columns[i]), {test_of(random, columns[i])}};
        if (random.below(3) == 0) filter.tests.push_back(test_of(random, columns[i]));
        INFO("seed " << seed << ", " << filter.spelled());
        CHECK(keys_of(all | filter) == scanned(all, filter, *types[i]));
      }
  }
  CHECK(damaged > 50);
}

TEST_CASE("source/parquet: where and nulls of lists of structs, and of maps") {
  const auto source = ps::parquet(penstock_test::fixture("reports/not_null.parquet").string());
  for (const std::string column : {"ls", "m"}) {
    INFO(column);
    CHECK((source | ps::where(column, ps::is_not_null())).size() == 2);
    CHECK((source | ps::where(column, ps::is_null())).size() == 1);
  }
}

TEST_CASE("source/delta: where and a column that was added later, which is null in older files") {
  const auto source = ps::delta(penstock_test::fixture("reports/delta_added_column").string());
  CHECK((source | ps::where<"n">(ps::is_null())).size() == 4);
  CHECK((source | ps::where<"n">(ps::is_not_null())).size() == 1);
  CHECK((source | ps::where<"n">(ps::at_least(0))).size() +
            (source | ps::where<"n">(ps::less_than(0))).size() ==
        1);
}

TEST_CASE(
    "source/parquet: where and an index of pages that says of all pages that they have nothing but nulls") {
  const auto folder = penstock_test::test_data("reports");
  if (!folder) {
    WARN("the folder of real files is not there: page_index_without_counts.parquet is not read");
    return;
  }
  const auto source = ps::parquet((*folder / "page_index_without_counts.parquet").string(),
                                  {.page_checksum_verification = false});
  CHECK((source | ps::where<"a">(ps::is_not_null())).size() == 5120);
  CHECK((source | ps::where<"a">(ps::is_null())).size() == 0);
  CHECK((source | ps::where<"b">(ps::at_least(std::numeric_limits<std::int32_t>::min()))).size() == 5120);
}

}  // namespace parquet_where_test
