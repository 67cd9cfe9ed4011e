// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/parquet.hpp>

#include <penstock/codec/arrow_value.hpp>
#include <penstock/codec/identity.hpp>
#include <penstock/codec/npy.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/subset.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/dataset.hpp>
#include <penstock/source/mix.hpp>
#include <penstock/source/parquet_writer.hpp>
#include <penstock/stage/bad_samples.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include "support/arrow_text.hpp"
#include "support/catch.hpp"
#include "support/count_allocations.hpp"
#include "support/external_program.hpp"
#include "support/fixtures.hpp"
#include "support/resume_test.hpp"
#include "support/temp_dir.hpp"
#include "support/test_data.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;
using penstock_test::arrow_rows_text;

static_assert(ps::indexed_source<ps::parquet_source<ps::mapped_file>> &&
              ps::projecting_source<ps::parquet_source<ps::mapped_file>>);
static_assert(ps::open_sample<ps::parquet_source<ps::mapped_file>::element>);

namespace parquet_test {

bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

template <class Call>
std::string error_of(const Call& call) {
  try {
    (void)call();
  } catch (const ps::error& e) {
    return e.what();
  }
  return "none";
}

/// The rows of some bytes, or the error.
std::string outcome(std::string_view bytes) {
  std::string rows;
  const std::string failed = error_of([&] {
    rows = arrow_rows_text(ps::parquet(ps::memory_files().add_view("x.parquet", ps::bytes_of(bytes)),
                                       {.keep = 1 << 20, .limit = 64 << 20}));
  });
  return failed == "none" ? rows : failed;
}

/// The command that runs tools/parquet_oracles.py; nothing if pyarrow is not there.
std::optional<std::string> oracle_program() {
  const char* const support = std::getenv("PENSTOCK_TEST_SUPPORT");
  if (support == nullptr) return std::nullopt;
  const char* const named = std::getenv("PENSTOCK_TEST_ARROW");
  const std::string python = named == nullptr || *named == '\0' ? "python3" : named;
  const auto script =
      std::filesystem::path(support).parent_path().parent_path() / "tools" / "parquet_oracles.py";
  if (!penstock_test::have_program("pyarrow", python + " -c 'import pyarrow'")) return std::nullopt;
  return python + " " + script.string();
}

/// Counts how often it is asked for one value, and for all in a row.
struct counting_codec {
  static constexpr std::string_view codec_name = "counting";
  static constexpr bool reads_columns = true, reads_contiguous = true;
  static inline std::atomic<int> ones{0}, runs{0};
  using scratch = ps::arrow_value<std::int64_t>::scratch;
  template <class Value>
  [[nodiscard]] std::int64_t decode(const Value& in, scratch& s) const {
    ++ones;
    return ps::arrow_value<std::int64_t>().decode(in, s);
  }
  template <class Value>
  [[nodiscard]] auto values_of(const Value& in) const {
    ++runs;
    return ps::arrow_value<std::int64_t>().values_of(in);
  }
};

/// `count` rows: a number, the same mod 10 or null, a text of 100 letters, three floats, bytes.
void write_rows(const std::string& path, std::int64_t first, std::int64_t count,
                ps::parquet_writer_options options = {.group_rows = 10, .compression = "snappy"}) {
  ps::parquet_writer out(path,
                         {{"i", "int64"},
                          {"digit", "int32"},
                          {"s", "string"},
                          {"v", "fixed_size_list<float>[3]"},
                          {"raw", "binary"}},
                         std::move(options));
  for (std::int64_t i = first; i < first + count; ++i) {
    const std::vector<float> v{static_cast<float>(i), 0.5f, -1};
    const std::string text(100, static_cast<char>('a' + i % 26));
    out.write({{"i", i},
               {"digit", i % 7 == 3 ? ps::parquet_value() : ps::parquet_value(i % 10)},
               {"s", text},
               {"v", v},
               {"raw", text.substr(0, static_cast<std::size_t>(i % 5))}});
  }
  out.close();
}

struct rows_folder {
  penstock_test::temp_dir dir;
  rows_folder() {
    write_rows((dir / "part-0.parquet").string(), 0, 35);
    write_rows((dir / "part-1.parquet").string(), 35, 30);
  }
  std::string path() const { return dir.path().string(); }
};

template <class Source>
std::vector<std::int64_t> numbers(const Source& source, std::size_t workers = 0) {
  auto run =
      (source | ps::decode<ps::field<"i", ps::arrow_value<std::int64_t>>> | ps::workers(workers)).open();
  std::vector<std::int64_t> found;
  for (auto&& row : run) found.push_back(ps::get<"i">(row));
  return found;
}

template <class Keep>
std::vector<std::int64_t> chosen(Keep keep) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < 65; ++i)
    if (keep(i)) all.push_back(i);
  return all;
}
bool digit_is(std::int64_t i, std::int64_t digit) { return i % 7 != 3 && i % 10 == digit; }

/// A filter as tools/parquet_oracles.py writes it.
ps::column_filter filter_of(const std::string& line) {
  std::istringstream parts(line);
  ps::column_filter made;
  std::getline(parts, made.column, '\t');
  for (std::string part; std::getline(parts, part, '\t');) {
    std::istringstream words(part);
    std::string name;
    words >> name;
    std::vector<ps::column_constant> values;
    for (std::string word; words >> word;) {
      const std::string rest = word.substr(1);
      if (word[0] == 'w') {
        if (rest[0] == '-')
          values.emplace_back(std::strtoll(rest.c_str(), nullptr, 10));
        else
          values.emplace_back(std::strtoull(rest.c_str(), nullptr, 10));
      } else if (word[0] == 'r') {
        values.emplace_back(std::strtod(rest.c_str(), nullptr));
      } else if (word[0] == 'b') {
        values.emplace_back(rest == "1");
      } else {
        std::string text;
        for (std::size_t i = 0; i + 1 < rest.size(); i += 2)
          text += static_cast<char>(std::strtol(rest.substr(i, 2).c_str(), nullptr, 16));
        values.emplace_back(text);
      }
    }
    constexpr std::string_view names[] = {"equals",   "differs_from", "less_than", "at_most", "greater_than",
                                          "at_least", "between",      "one_of",    "is_null", "is_not_null"};
    const auto at = std::find(std::begin(names), std::end(names), name) - std::begin(names);
    made.tests.emplace_back(static_cast<ps::column_test::kind>(at), std::move(values));
  }
  return made;
}

TEST_CASE("source/parquet: random columns that pyarrow writes, value for value, over every storage") {
  const auto program = oracle_program();
  if (!program) return;
  const penstock_test::temp_dir dir;
  const int count = penstock_test::long_tests() ? 1000 : 120;
  const auto made = penstock_test::run_program(*program + " --random 7 " + std::to_string(count) + " " +
                                               dir.path().string());
  INFO(made.output);
  REQUIRE(made.status == 0);
  for (int i = 0; i < count; ++i) {
    const std::string name = (dir / (std::to_string(i) + ".parquet")).string();
    INFO(name);
    const std::string expected = read_file(name + ".expected");
    CHECK(arrow_rows_text(ps::parquet(name), static_cast<std::size_t>(i % 3)) == expected);
    CHECK(arrow_rows_text(ps::parquet(ps::file(name)), 2) == expected);
    if (i % 10 != 0) continue;
    const auto memory = ps::memory_files().add(name, read_file(name));
    CHECK(arrow_rows_text(
              ps::parquet(ps::simulated_storage(memory, {.latency = std::chrono::microseconds(1)})), 7) ==
          expected);
  }
}

TEST_CASE("source/parquet: where keeps the rows that Python keeps, whatever the file says of its values") {
  const auto program = oracle_program();
  if (!program) return;
  const penstock_test::temp_dir dir;
  const int count = penstock_test::long_tests() ? 400 : 40;
  const auto made = penstock_test::run_program(*program + " --filters 3 " + std::to_string(count) + " " +
                                               dir.path().string());
  INFO(made.output);
  REQUIRE(made.status == 0);
  for (int i = 0; i < count; ++i) {
    const std::string name = (dir / std::to_string(i)).string();
    std::istringstream filters(read_file(name + ".where")), rows(read_file(name + ".kept"));
    const auto all = ps::parquet(name + ".parquet");
    const auto everything = all.connect();
    for (std::string line, expected; std::getline(filters, line) && std::getline(rows, expected);) {
      const ps::column_filter filter = filter_of(line);
      INFO(name << ": " << filter.spelled());
      const auto kept = all | filter;
      const auto reader = kept.connect();
      std::string found;
      for (std::uint64_t k = 0; k < kept.size(); ++k) {
        const std::string key = reader.key(k);
        found.append(k == 0 ? "" : " ").append(key.substr(key.rfind(':') + 1));
      }
      CHECK(found == expected);
    }
  }
}

TEST_CASE("source/parquet: folders, filters and columns") {
  const rows_folder folder;
  const auto rows = ps::parquet(folder.path());
  CHECK(rows.size() == 65);
  CHECK(*rows.starts() == std::vector<std::uint64_t>{0, 10, 20, 30, 35, 45, 55, 65});
  CHECK(rows.connect().key(36) == "part-1.parquet:1");
  CHECK(contains(rows.describe(), "parquet(2 files, 7 row groups): 65 rows of i (int64), digit (int32)"));
  CHECK(numbers(rows, 2) == chosen([](auto) { return true; }));
  const auto threes = rows | ps::where<"digit">(ps::equals(3));
  CHECK(numbers(threes, 2) == chosen([](auto i) { return digit_is(i, 3); }));
  CHECK(contains(threes.describe(), " | where<\"digit\">(equals(3))"));
  CHECK(threes.fingerprint() != rows.fingerprint());
  CHECK((rows | ps::where<"digit">(ps::equals(3))).fingerprint() == threes.fingerprint());
  const auto fewer = rows | ps::where<"digit">(ps::one_of({3, 5}), ps::is_not_null()) |
                     ps::where("i", ps::at_least(10), ps::less_than(60));
  CHECK(numbers(fewer) ==
        chosen([](auto i) { return (digit_is(i, 3) || digit_is(i, 5)) && i >= 10 && i < 60; }));
  CHECK((rows | ps::where<"digit">(ps::is_null())).size() == 9);
  CHECK((rows | ps::where<"i">(ps::greater_than(1000))).size() == 0);
  CHECK((rows | ps::where<"s">(ps::equals(std::string(100, 'c')))).size() == 3);

  const auto two = rows | ps::columns<"raw", "i">;
  CHECK(numbers(two | ps::where<"digit">(ps::equals(3))).size() == 6);
  auto run = (two | ps::map([](auto&& row) { return row.size(); })).open();
  for (const std::size_t count : run) CHECK(count == 2);
  CHECK(numbers(ps::mix(ps::weights{1, 1}, threes, threes)).size() == 2 * threes.size());
}

TEST_CASE("source/parquet: the examples in headers") {
  using namespace penstock;
  const penstock_test::temp_dir dir;
  const auto before = std::filesystem::current_path();
  std::filesystem::create_directories(dir / "imagenet/data");
  std::filesystem::current_path(dir.path());
  const std::string jpeg_bytes = "\377\330";
  {
    parquet_writer out("photos.parquet",
                       {{"image", "binary"}, {"label", "int64"}, {"embedding", "fixed_size_list<float>[3]"}});
    const std::vector<float> embedding{0.5f, 1, 2};
    out.write({{"image", jpeg_bytes}, {"label", 7}, {"embedding", embedding}});
    out.close();
  }
  parquet_writer out("imagenet/data/train-0.parquet", {{"image.bytes", "binary"}, {"label", "int64"}});
  for (int i = 0; i < 8; ++i) out.write({{"image.bytes", jpeg_bytes}, {"label", i}});
  out.close();
  using jpeg = identity;
  auto rows = penstock::parquet("imagenet/data/train-*.parquet") | columns<"image.bytes", "label"> |
              where<"label">(one_of({3, 5})) | shuffle(seed(7)) |
              decode<field<"image.bytes", jpeg>, field<"label", arrow_value<std::int64_t>>>;
  std::size_t count = 0;
  for (auto&& row : rows.epoch(0)) count += get<"image.bytes">(row).view().size();
  CHECK(count == 4);
  CHECK(penstock::parquet("photos.parquet").size() == 1);
  std::filesystem::current_path(before);
}

TEST_CASE(
    "source/parquet: dataset finds Parquet by the marks at both ends, also in folders that are columns") {
  const penstock_test::temp_dir dir;
  const auto write = [&](const char* name) {
    std::filesystem::create_directories((dir / name).parent_path());
    ps::parquet_writer out((dir / name).string(), {{"i", "int64"}});
    for (int i = 0; i < 4; ++i) out.write({{"i", i}});
    out.close();
    return (dir / name).string();
  };
  const auto found = [](const std::string& path) {
    const ps::dataset_listing there(path);
    CHECK(ps::format_of(there, ps::core_formats{}, ps::parquet_format{}) == "parquet");
    return std::visit([](const auto& one) { return one.size(); },
                      ps::dataset(there, ps::core_formats{}, ps::parquet_format{}));
  };
  CHECK(found(write("one/x")) == 4);
  CHECK(found(write("two/a-0.parquet")) == 4);
  write("two/a-1.parquet");
  CHECK(found((dir / "two").string()) == 8);
  write("three/year=2024/a.parquet");
  write("three/year=2025/a.parquet");
  CHECK(found((dir / "three").string()) == 8);
  const ps::parquet_source<ps::mapped_file> rows = ps::parquet((dir / "three").string());
  REQUIRE(rows.fields().size() == 2);
  CHECK((rows.fields()[0].name == "i" && rows.fields()[0].type == "int64"));
  CHECK((rows.fields()[1].name == "year" && rows.fields()[1].type == "int64"));
  std::filesystem::resize_file(dir / "two/a-0.parquet",
                               std::filesystem::file_size(dir / "two/a-0.parquet") - 1);
  CHECK(ps::parquet_format::look(ps::dataset_listing((dir / "two").string())) == ps::format_fit::none);
}

TEST_CASE("source/parquet: rows one behind the other are read at once, and are the same rows") {
  const penstock_test::temp_dir dir;
  const std::string path = (dir.path() / "rows.parquet").string();
  {
    ps::parquet_writer out(path, {{"i", "int64"}, {"x", "double"}, {"m", "int32"}},
                           {.group_rows = 300, .compression = "snappy"});
    for (std::int64_t i = 0; i < 1000; ++i)
      out.write({{"i", i},
                 {"x", static_cast<double>(i) / 4},
                 {"m", i > 600 && i < 700 && i % 3 == 0 ? ps::parquet_value() : ps::parquet_value(i % 10)}});
    out.close();
  }
  using number = ps::field<"i", ps::arrow_value<std::int64_t>>;
  using real = ps::field<"x", ps::arrow_value<double>>;
  using maybe = ps::field<"m", ps::arrow_value<std::int32_t, -1>>;
  using wider = ps::field<"m", ps::arrow_value<std::int64_t, -1>>;
  static_assert(decltype(ps::decode<number, real, maybe>)::reads_contiguous);
  static_assert(
      !decltype(ps::decode<number, ps::field<"s", ps::arrow_value<std::string>>>)::reads_contiguous);
  const auto one_by_one = ps::map([](const auto& row) { return row; });
  const auto text = [](const auto& plan, std::uint64_t from = 0) {
    std::string all;
    auto run = plan.open();
    std::uint64_t batches = 0;
    for (const auto& b : run.epoch(0)) {
      if (batches++ < from) continue;
      for (std::size_t i = 0; i < b.size(); ++i)
        all += std::to_string(ps::get<"i">(b)[i]) + " " + std::to_string(ps::get<"x">(b)[i]) + " " +
               std::to_string(ps::get<"m">(b)[i]) + "\n";
    }
    return all;
  };
  const auto all = ps::parquet(path);
  const auto sources = [&](const auto& check) {
    check(all, std::size_t{1000});
    check(all | ps::where<"i">(ps::between(std::int64_t{290}, std::int64_t{620})), std::size_t{331});
    check(all | ps::where<"m">(ps::one_of({3, 4, 5})), std::size_t{290});
  };
  sources([&](const auto& rows, std::size_t count) {
    REQUIRE(rows.size() == count);
    const std::string expected = text(rows | ps::decode<number, real, maybe> | one_by_one | ps::batch(1));
    for (const unsigned workers : {0u, 1u, 2u, 7u})
      for (const std::size_t batch : {1, 7, 64, 300}) {
        CHECK(text(rows | ps::decode<number, real, maybe> | ps::batch(batch) | ps::workers(workers)) ==
              expected);
        CHECK(text(rows | ps::decode<number, real, wider> | ps::batch(batch) | ps::workers(workers)) ==
              expected);
      }
    const auto shuffled = rows | ps::shuffle(ps::seed(3), ps::window(100));
    CHECK(text(shuffled | ps::decode<number, real, maybe> | ps::batch(50) | ps::workers(2)) ==
          text(shuffled | ps::decode<number, real, maybe> | one_by_one | ps::batch(50)));
  });

  auto counted = (all | ps::decode<ps::field<"i", counting_codec>> | ps::batch(1000)).open();
  for (const auto& b : counted.epoch(0)) CHECK(ps::get<"i">(b)[777] == 777);
  CHECK(counting_codec::ones == 0);
  CHECK(counting_codec::runs < 40);

  // Rows are read one by one where a null is asked for that the codec does not take.
  const std::string failed = error_of([&] {
    auto run = (all | ps::decode<ps::field<"m", ps::arrow_value<std::int32_t>>> | ps::batch(64)).open();
    for (const auto& b : run.epoch(0)) (void)b;
  });
  CHECK(contains(failed, "rows.parquet"));
  CHECK(contains(failed, "rows.parquet:603"));
}

TEST_CASE("source/parquet: folders called column=value are columns") {
  const penstock_test::temp_dir dir;
  for (const auto* const part : {"year=2024/city=S%C3%A3o Paulo", "year=2025/city=__HIVE_DEFAULT_PARTITION__",
                                 "year=2025/city=Oslo", "_temporary/0"}) {
    std::filesystem::create_directories(dir / part);
    write_rows((dir / part / "part-0.parquet").string(), part[8] == '4' ? 0 : 100, 15);
  }
  std::ofstream(dir / "_SUCCESS");
  const auto rows = ps::parquet(dir.path().string());
  CHECK(rows.size() == 45);
  CHECK(contains(rows.describe(), ", year (int64), city (string)"));
  auto run = (rows | ps::where<"year">(ps::equals(2025)) |
              ps::decode<ps::field<"i", ps::arrow_value<std::int64_t>>,
                         ps::field<"year", ps::arrow_value<std::int16_t>>,
                         ps::field<"city", ps::arrow_value<std::optional<std::string>>>> |
              ps::workers(2))
                 .open();
  std::size_t count = 0;
  for (auto&& row : run) {
    CHECK(ps::get<"year">(row) == 2025);
    CHECK(ps::get<"city">(row) == (count < 15 ? std::optional<std::string>("Oslo") : std::nullopt));
    CHECK(ps::get<"i">(row) == 100 + static_cast<std::int64_t>(count++ % 15));
  }
  CHECK(count == 30);
  CHECK((rows | ps::where<"city">(ps::equals("S\u00e3o Paulo"))).size() == 15);
  CHECK((rows | ps::where<"city">(ps::is_null())).size() == 15);

  std::filesystem::create_directories(dir / "other");
  write_rows((dir / "other" / "x.parquet").string(), 0, 1);
  CHECK(contains(error_of([&] { return ps::parquet(dir.path().string()); }), "not the same as those of"));
}

TEST_CASE("source/parquet: splits are not mixed up, and no file may be missing") {
  const penstock_test::temp_dir dir;
  write_rows((dir / "train-00001-of-00002.parquet").string(), 35, 30);
  CHECK(contains(error_of([&] { return ps::parquet(dir.path().string()); }),
                 "counts, and lacks number 0: fetch the others"));
  write_rows((dir / "train-00000-of-00002.parquet").string(), 0, 35);
  CHECK(numbers(ps::parquet(dir.path().string())) == chosen([](auto) { return true; }));
  write_rows((dir / "test-00000-of-00001.parquet").string(), 0, 5);
  CHECK(contains(error_of([&] { return ps::parquet(dir.path().string()); }), "the splits train, test"));
  CHECK(ps::parquet((dir / "test-*.parquet").string()).size() == 5);
}

TEST_CASE("source/parquet: a run resumes at every step, on other numbers of workers and ranks") {
  const rows_folder folder;
  const auto rows = [&](std::uint64_t keep) {
    return ps::parquet(folder.path(), {.keep = keep}) | ps::where<"i">(ps::differs_from(17)) |
           ps::decode<ps::field<"i", ps::arrow_value<std::int64_t>>> |
           ps::map([](const auto& r) { return static_cast<std::uint64_t>(ps::get<"i">(r)); });
  };
  for (const std::uint64_t keep : {0u, 1u << 20}) {
    engine_test::check_all_stops(rows(keep) | ps::shuffle(ps::seed(3)) | ps::batch(8));
    engine_test::check_elastic(
        [&](std::uint64_t rank, std::uint64_t world, std::uint64_t each) {
          return rows(keep) | ps::shuffle(ps::seed(5)) | ps::shard(rank, world) | ps::batch(each);
        },
        12, 2, 3, 1);
  }
}

TEST_CASE("source/parquet: only named columns are read, once, and only of row groups that may have rows") {
  const penstock_test::temp_dir dir;
  const std::string path = (dir / "x.parquet").string();
  write_rows(path, 0, 10000, {.group_rows = 1000, .compression = "none", .bloom = {}});
  const ps::simulated_storage counted(ps::memory_files().add("x.parquet", read_file(path)), {});
  const auto rows = ps::parquet(counted);
  const std::uint64_t footer = counted.bytes();
  CHECK(numbers(rows | ps::shuffle(ps::seed(1)), 3).size() == 10000);
  const std::uint64_t column = counted.bytes() - footer;
  CHECK(column > 10000);
  CHECK(column < 200000);
  const auto last = rows | ps::where<"i">(ps::at_least(9000));
  CHECK(counted.bytes() == footer + column);  // statistics decide
  CHECK(numbers(last).size() == 1000);
  CHECK(counted.bytes() - footer - column < column / 9);
  const std::uint64_t before = counted.bytes();
  CHECK((rows | ps::where<"i">(ps::equals(9500))).size() == 1);
  CHECK(counted.bytes() - before < column / 9);
  CHECK(numbers(ps::parquet(counted, {.keep = 0}), 2).size() == 10000);
}

TEST_CASE("source/parquet: what is damaged is an error, or rows, and never more") {
  const penstock_test::temp_dir dir;
  const std::string path = (dir / "x.parquet").string();
  write_rows(path, 0, 12, {.group_rows = 5, .compression = "snappy"});
  const std::string whole = read_file(path), good = outcome(whole);
  CHECK_FALSE(contains(good, "penstock:"));
  for (std::size_t size = 0; size < whole.size(); size += 97)
    CHECK(contains(outcome(whole.substr(0, size)), "[file x.parquet"));
  ps::rng random(1, 2, 3);
  for (int i = 0; i < 400; ++i) {
    std::string damaged = whole;
    damaged[static_cast<std::size_t>(random.below(damaged.size()))] ^=
        static_cast<char>(1 << random.below(8));
    CHECK_FALSE(outcome(damaged).empty());
  }
}

TEST_CASE("source/parquet: faults are one sentence with the place") {
  const rows_folder folder;
  const auto rows = ps::parquet(folder.path());
  CHECK(contains(outcome("no Parquet at all"), "Arrow cannot read it"));
  CHECK(
      contains(outcome("<!DOCTYPE html>\n<html></html>"), "this is not a Parquet file: it is an HTML page"));
  CHECK(contains(outcome(read_file(penstock_test::fixture("reports/page.parquet").string())),
                 "this is not a Parquet file: it is an HTML page"));
  CHECK(contains(outcome(""), "[file x.parquet"));
  CHECK(contains(error_of([&] { return rows | ps::where<"nope">(ps::equals(1)); }),
                 "there is no column 'nope' to choose rows by, only i, digit, s, v, raw"));
  CHECK(contains(error_of([&] { return rows | ps::columns<"nope">; }),
                 "there is no column 'nope', only i, digit, s, v, raw"));
  CHECK(contains(error_of([&] { return rows | ps::where<"i">(ps::equals("one")); }),
                 "the column 'i' is of type int64, which cannot be compared with \"one\""));
  CHECK(contains(error_of([&] { return rows | ps::where<"s">(ps::between(1.5, 2)); }),
                 "which cannot be compared with 1.5"));
  CHECK(contains(error_of([&] { return rows | ps::where<"v">(ps::equals(1)); }),
                 "where compares no values of type fixed_size_list<float>[3]"));
  const std::string small = error_of([&] { return numbers(ps::parquet(folder.path(), {.limit = 100})); });
  CHECK(contains(small, "the row group needs more than 100 bytes of memory"));
  CHECK(contains(small, "part-0.parquet"));
  const std::string null = error_of([&] {
    auto run = (rows | ps::decode<ps::field<"digit", ps::arrow_value<std::int64_t>>>).open();
    for (auto&& row : run) (void)row;
    return 0;
  });
  CHECK(contains(null, "the value of the column 'digit' is null"));
  CHECK(contains(null, "part-0.parquet:3"));
  CHECK(contains(error_of([] { return ps::parquet("/nowhere/x.parquet"); }), "/nowhere/x.parquet"));

  ps::parquet_writer other((folder.dir / "part-2.parquet").string(), {{"i", "int32"}});
  other.write({{"i", 1}});
  other.close();
  const auto drifted = ps::parquet(folder.path());
  CHECK(drifted.size() == 66);
  CHECK(drifted.schema().text() == rows.schema().text());
}

TEST_CASE("source/parquet: files of a table: names, values per file, columns that came later, deleted rows") {
  const rows_folder folder;
  ps::parquet_writer other((folder.dir / "part-2.parquet").string(), {{"i", "int32"}, {"later", "double"}});
  for (int i = 65; i < 70; ++i) other.write({{"i", i}, {"later", i + 0.5}});
  other.close();
  ps::detail::table_facts table;
  const auto column = [](const char* name, const char* format) {
    ps::arrow_type type = ps::arrow_type::of_format(format);
    type.name = name;
    return type;
  };
  table.schema = ps::arrow_type::of_format("+s");
  table.schema.children = {column("number", "l"), column("later", "g")};
  table.stored_as = {{"i"}, {}};
  table.part_types = {column("day", "tdD"), column("region", "u"), column("share", "g"), column("new", "b")};
  table.part_values = {{"19000", "north", "0.5", "true"},
                       {"19001", std::nullopt, "1e3", "false"},
                       {std::nullopt, "", std::nullopt, std::nullopt}};
  table.deleted = {{0, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 34}, {}, {4}};
  table.says = "table";
  table.mark = 1;
  const auto open = [&] {
    return ps::parquet_source<ps::mapped_file>(ps::mapped_file((folder.dir / "part-{0..2}.parquet").string()),
                                               {}, &table);
  };
  const auto rows = open();
  CHECK(rows.size() == 35 - 13 + 30 + 4);
  CHECK(contains(rows.describe(),
                 "table(3 files, 7 row groups): 56 rows of number (int64), later (double), day "
                 "(date32[day]), region (string)"));
  auto run = (rows | ps::decode<ps::field<"number", ps::arrow_value<std::int64_t>>,
                                ps::field<"later", ps::arrow_value<std::optional<double>>>,
                                ps::field<"day", ps::arrow_value<std::int32_t, 0>>,
                                ps::field<"region", ps::arrow_value<std::optional<std::string>>>,
                                ps::field<"share", ps::arrow_value<std::optional<double>>>,
                                ps::field<"new", ps::arrow_value<std::optional<bool>>>>)
                 .open();
  std::vector<std::int64_t> expected;
  for (std::int64_t i = 0; i < 69; ++i)
    if (i != 0 && i != 34 && (i < 9 || i > 19)) expected.push_back(i);
  std::vector<std::int64_t> found;
  for (auto&& row : run) {
    const std::int64_t i = ps::get<"number">(row);
    found.push_back(i);
    CHECK(ps::get<"later">(row).value_or(-1) == (i < 65 ? -1 : static_cast<double>(i) + 0.5));
    CHECK(ps::get<"day">(row) == (i < 35 ? 19000 : i < 65 ? 19001 : 0));
    CHECK(ps::get<"region">(row) == (i < 35   ? std::optional<std::string>("north")
                                     : i < 65 ? std::nullopt
                                              : std::optional<std::string>("")));
    CHECK(ps::get<"share">(row).value_or(0) == (i < 35 ? 0.5 : i < 65 ? 1000 : 0));
    CHECK(ps::get<"new">(row) == (i < 65 ? std::optional<bool>(i < 35) : std::nullopt));
  }
  CHECK(found == expected);
  CHECK((rows | ps::where<"day">(ps::equals(19000)) | ps::where<"number">(ps::at_most(20))).size() == 9);
  CHECK((rows | ps::where<"later">(ps::is_not_null())).size() == 4);
  CHECK((rows | ps::where<"number">(ps::greater_than(60))).size() == 8);
  CHECK(open().fingerprint() == rows.fingerprint());
  table.mark = 2;
  CHECK(open().fingerprint() != rows.fingerprint());
  table.schema.children[0] = column("number", "u");
  CHECK(contains(error_of(open),
                 "the column 'number' is of type int64 in the file, and of type string in the table"));
  table.schema.children[0] = column("number", "l");
  table.part_values[1][0] = "yesterday";
  CHECK(contains(error_of(open), "has a file's value 'yesterday', which is none"));
}

TEST_CASE("source/parquet: a file that changes while it is read is an error") {
  const rows_folder folder;
  const auto rows = ps::parquet(ps::file(std::vector{(folder.dir / "part-0.parquet").string()}));
  write_rows((folder.dir / "part-0.parquet").string(), 0, 36);
  CHECK(contains(error_of([&] { return numbers(rows); }), "was changed after the dataset was opened"));
}

TEST_CASE("source/parquet: Parquet's own test files as pyarrow reads them, and Petastorm's folder") {
  const auto data = penstock_test::test_data("parquet");
  if (!data) {
    WARN("there is no folder parquet in the test data");
    return;
  }
  const auto program = oracle_program();
  if (!program) return;
  std::string files;
  for (const auto* const part : {"good", "bad", "fuzz"})
    for (const auto& one : std::filesystem::directory_iterator(*data / part))
      if (one.path().extension() != ".md") files += " " + one.path().string();
  const auto expected = penstock_test::run_program(*program + " --expect" + files);
  REQUIRE(expected.status == 0);
  std::size_t compared = 0;
  std::string_view rest = expected.output;
  while (!rest.empty()) {
    const std::size_t line = rest.find('\n'), end = std::min(rest.find("\n== ", line), rest.size() - 1);
    const std::string path(rest.substr(3, line - 3));
    const std::string_view rows = rest.substr(line + 1, end - line);
    rest.remove_prefix(end + 1);
    INFO(path);
    if (rows.starts_with("pyarrow: ")) {  // an error for us, too, or a text that is no UTF-8
      CHECK_FALSE(outcome(read_file(path)).empty());
      continue;
    }
    const auto text_of = [&](ps::parquet_options options) {
      return arrow_rows_text(ps::parquet(std::vector{path}, options));
    };
    // Where pyarrow gives wrong times: beyond those that nanoseconds count, and one that microseconds do not.
    if (contains(path, "int96_from_spark")) {
      using unit = ps::timestamp_unit;
      CHECK(contains(error_of([&] { return text_of({}); }), "timestamp_unit::micro"));
      CHECK(contains(error_of([&] { return text_of({.coerce_int96_timestamp_unit = unit::micro}); }),
                     "that microseconds in 64 bits cannot count"));
      continue;
    }
    // pyarrow compares no checksums by default.
    const bool changed = contains(path, "corrupt-checksum");
    if (changed) CHECK(contains(error_of([&] { return text_of({}); }), "do not have the checksum"));
    CHECK(text_of({.page_checksum_verification = !changed}) == rows);
    ++compared;
  }
  CHECK(compared >= 42);

  const auto petastorm = ps::parquet((*data / "petastorm").string());
  CHECK(petastorm.size() == 20);
  CHECK((petastorm | ps::where<"partition_key">(ps::equals("p_1"))).size() == 10);
  auto run = (petastorm |
              ps::decode<ps::field<"id", ps::arrow_value<std::int64_t>>, ps::field<"matrix", ps::npy<float>>,
                         ps::field<"matrix_uint16", ps::npy<std::uint16_t>>,
                         ps::field<"matrix_nullable", ps::arrow_value<std::optional<ps::bytes>>>,
                         ps::field<"image_png", ps::identity>> |
              ps::shuffle(ps::seed(1)) | ps::workers(2))
                 .open();
  std::size_t rows = 0;
  for (auto&& row : run) {
    CHECK(ps::get<"id">(row) >= 0);
    CHECK(ps::get<"matrix">(row).view().shape().rank() >= 1);
    CHECK(ps::get<"matrix_uint16">(row).view().shape().rank() >= 1);
    CHECK(ps::text_of(ps::get<"image_png">(row).view()).starts_with("\211PNG"));
    ++rows;
  }
  CHECK(rows == 20);
}

}  // namespace parquet_test
