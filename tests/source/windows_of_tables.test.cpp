// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Windows of the rows of Parquet, Arrow and CSV files.

#include <penstock/source/windows.hpp>

#include <penstock/codec/arrow_value.hpp>
#include <penstock/codec/text.hpp>
#include <penstock/inspection/derive.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/arrow_ipc.hpp>
#include <penstock/source/csv.hpp>
#include <penstock/source/parquet.hpp>
#include <penstock/source/parquet_writer.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/file.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/temp_dir.hpp"

#include <arrow/api.h>
#include <arrow/io/api.h>
#include <arrow/ipc/api.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;

namespace windows_of_tables_test {

using penstock_test::contains;

constexpr std::uint64_t lengths[] = {9, 1, 30, 4, 17};
constexpr std::size_t count = 61;

struct row {
  std::int64_t episode = 0;
  double time = 0;  // 10 rows per second
  std::vector<float> state;
  std::uint64_t begin = 0, end = 0;
};
std::vector<row> made_rows() {
  std::vector<row> all;
  std::int64_t episode = 40;
  for (const std::uint64_t length : lengths) {
    const std::uint64_t begin = all.size();
    for (std::uint64_t i = 0; i < length; ++i) {
      const auto at = static_cast<float>(all.size());
      all.push_back({episode, 0.1 * static_cast<double>(i), {at, at + 0.5f, -at}, begin, begin + length});
    }
    episode -= 3;
  }
  return all;
}

/// Two files, with row groups of seven rows.
std::string parquet_files(const penstock_test::temp_dir& dir) {
  const auto rows = made_rows();
  for (std::size_t f = 0; f < 2; ++f) {
    ps::parquet_writer out((dir / ("part-" + std::to_string(f) + ".parquet")).string(),
                           {{"episode_index", "int64"},
                            {"timestamp", "float"},
                            {"state", "fixed_size_list<float>[3]"},
                            {"action", "list<float>"},
                            {"index", "int64"},
                            {"task", "string"}},
                           {.group_rows = 7});
    for (std::size_t i = f == 0 ? 0 : 25; i < (f == 0 ? 25 : count); ++i) {
      const std::vector<float> action{static_cast<float>(i) * 2};
      const std::string task = "task of " + std::to_string(rows[i].episode);
      out.write({{"episode_index", rows[i].episode},
                 {"timestamp", rows[i].time},
                 {"state", rows[i].state},
                 {"action", action},
                 {"index", static_cast<std::int64_t>(i)},
                 {"task", task}});
    }
    out.close();
  }
  return (dir / "part-{0,1}.parquet").string();
}
/// A file of record batches of five rows, some of whose numbers are null.
std::string arrow_file(const penstock_test::temp_dir& dir) {
  const std::string path = (dir / "x.arrow").string();
  const auto rows = made_rows();
  const auto state = std::make_shared<arrow::FloatBuilder>();
  arrow::FixedSizeListBuilder states(arrow::default_memory_pool(), state, 3);
  arrow::Int64Builder episodes;
  arrow::Int32Builder indexes;
  arrow::Int64Builder holes;
  const auto schema =
      arrow::schema({arrow::field("episode_index", arrow::int64()),
                     arrow::field("state", arrow::fixed_size_list(arrow::float32(), 3)),
                     arrow::field("index", arrow::int32()), arrow::field("hole", arrow::int64())});
  const auto check = [](const arrow::Status& status) { REQUIRE(status.ok()); };
  auto file = arrow::io::FileOutputStream::Open(path).ValueOrDie();
  auto writer = arrow::ipc::MakeFileWriter(file, schema).ValueOrDie();
  for (std::size_t begin = 0; begin < count; begin += 5) {
    const std::size_t end = std::min(count, begin + 5);
    for (std::size_t i = begin; i < end; ++i) {
      check(episodes.Append(rows[i].episode));
      check(states.Append());
      check(state->AppendValues(rows[i].state));
      check(indexes.Append(static_cast<std::int32_t>(i)));
      check(i % 4 == 1 ? holes.AppendNull() : holes.Append(static_cast<std::int64_t>(i)));
    }
    const auto made = [](auto& builder) { return builder.Finish().ValueOrDie(); };
    const auto a = made(episodes), b = made(states), c = made(indexes), d = made(holes);
    check(writer->WriteRecordBatch(
        *arrow::RecordBatch::Make(schema, static_cast<std::int64_t>(end - begin), {a, b, c, d})));
  }
  check(writer->Close());
  check(file->Close());
  return path;
}

/// Compares batches of states at {-2, 0, 1} and of indexes from 0 to 3 with the table.
template <class Plan>
void check_batches(const Plan& plan) {
  const auto rows = made_rows();
  const auto at = [&](std::size_t i, std::int64_t delta) {
    return static_cast<std::size_t>(std::clamp(static_cast<std::int64_t>(i) + delta,
                                               static_cast<std::int64_t>(rows[i].begin),
                                               static_cast<std::int64_t>(rows[i].end) - 1));
  };
  std::size_t i = 0;
  for (auto&& b : plan) {
    const auto states = ps::get<"state">(b);
    const auto indexes = ps::get<"index">(b);
    REQUIRE(states.shape() == ps::extents(b.size(), 3, 3));
    REQUIRE(indexes.shape() == ps::extents(b.size(), 4));
    for (std::size_t slot = 0; slot < b.size(); ++slot, ++i) {
      CHECK(ps::get<"episode_index">(b)[slot] == rows[i].episode);
      CHECK(ps::get<"step">(b)[slot] == static_cast<std::int64_t>(i - rows[i].begin));
      for (std::size_t k = 0; k < 3; ++k) {
        const std::int64_t delta = k == 0 ? -2 : static_cast<std::int64_t>(k) - 1;
        CHECK(std::ranges::equal(states[slot][k].flat(), rows[at(i, delta)].state));
        CHECK(ps::get<"state_is_pad">(b)(slot, k) ==
              (static_cast<std::int64_t>(i) + delta < static_cast<std::int64_t>(rows[i].begin) ||
               static_cast<std::int64_t>(i) + delta >= static_cast<std::int64_t>(rows[i].end)));
      }
      for (std::size_t k = 0; k < 4; ++k)
        CHECK(static_cast<std::size_t>(indexes(slot, k)) == at(i, static_cast<std::int64_t>(k)));
    }
  }
  CHECK(i == count);
}

const ps::column_at<"state"> past{-0.2, 0.0, 0.1};
const ps::column_at<"index"> chunk{0, 1, 2, 3};

}  // namespace windows_of_tables_test

using namespace windows_of_tables_test;

TEST_CASE("source/windows_of_tables: rows of Parquet, across row groups and files") {
  const penstock_test::temp_dir dir;
  const std::string path = parquet_files(dir);
  const auto rows =
      ps::parquet(path) |
      ps::decode<ps::field<"episode_index", ps::arrow_value<std::int64_t>>,
                 ps::field<"timestamp", ps::arrow_value<float>>, ps::field<"state", ps::arrow_array<float>>,
                 ps::field<"index", ps::arrow_value<std::int64_t>>,
                 ps::field<"task", ps::arrow_value<std::string_view>>>;
  const auto source = ps::windows<"episode_index">(rows, {.rate = 10}, past, chunk);
  CHECK(source.known_episodes().count() == 5);
  for (const unsigned workers : {0u, 2u})
    check_batches(source | ps::batch(8, ps::collate<"task">(ps::ragged)) | ps::workers(workers));
  // by the column of times, which are floats that were rounded
  check_batches(ps::windows<"episode_index", "timestamp">(rows, {}, past, chunk) |
                ps::batch(8, ps::collate<"task">(ps::ragged)));
  // texts in lists that are no arrays cannot be in a window, and the row's own text can
  for (auto&& b : source | ps::batch(count, ps::collate<"task">(ps::ragged)))
    CHECK(std::ranges::equal(ps::get<"task">(b)[9], std::string_view("task of 37")));
  // a stage behind decode, which each column evaluates
  check_batches(ps::windows<"episode_index">(
                    rows | ps::map([](const auto& r) {
                      const auto s = ps::get<"state">(r).flat();
                      return ps::record<ps::field<"episode_index", std::int64_t>,
                                        ps::field<"state", std::array<float, 3>>, ps::field<"index", int>>(
                          ps::get<"episode_index">(r), std::array<float, 3>{s[0], s[1], s[2]},
                          static_cast<int>(ps::get<"index">(r)));
                    }),
                    {.rate = 10}, past, chunk) |
                ps::batch(8));
  CHECK_THAT(source.connect().key({0, 26}), contains("part-1.parquet:1"));
  CHECK(source.starts()->size() == 11);  // 4 row groups and 6, and the end
  CHECK_THAT(source.describe(),
             contains("61 windows of 3 rows of column 'state', 4 rows of column 'index' in 5 "
                      "episodes"));
  const auto index = ps::derive(
      rows, "episode", [](const auto& r) { return ps::get<"episode_index">(r); }, dir.path().string());
  check_batches(ps::windows(rows, ps::episodes_of(index), {.rate = 10}, past, chunk) |
                ps::batch(8, ps::collate<"task">(ps::ragged)));
}

TEST_CASE("source/windows_of_tables: rows of Arrow files, numbers in runs and one by one") {
  const penstock_test::temp_dir dir;
  const std::string path = arrow_file(dir);
  const auto decoded = ps::decode<ps::field<"episode_index", ps::arrow_value<std::int64_t>>,
                                  ps::field<"state", ps::arrow_array<float>>,
                                  ps::field<"index", ps::arrow_value<std::int32_t>>>;
  check_batches(ps::windows<"episode_index">(ps::arrow_ipc(path) | decoded, {.rate = 10}, past, chunk) |
                ps::batch(8));
  check_batches(
      ps::windows<"episode_index">(ps::arrow_ipc(ps::file(path)) | decoded, {.rate = 10}, past, chunk) |
      ps::batch(8) | ps::workers(2));
  // columns of numbers alone, of which each is itself also where they are decoded together
  const auto numbers =
      ps::arrow_ipc(path) | ps::decode<ps::field<"episode_index", ps::arrow_value<std::int64_t>>,
                                       ps::field<"index", ps::arrow_value<std::int32_t>>>;
  const ps::episodes one(std::vector<std::uint64_t>{count});
  const auto check_indexes = [&](const auto& plan) {
    for (auto&& b : plan | ps::batch(count)) {
      const auto indexes = ps::get<"index">(b);
      for (std::size_t i = 0; i < b.size(); ++i)
        for (std::size_t k = 0; k < 4; ++k) CHECK(static_cast<std::size_t>(indexes(i, k)) == i + k);
    }
  };
  check_indexes(ps::windows(numbers, one, {.length = 4}));
  check_indexes(ps::windows(numbers | ps::seed(7), one, {.length = 4}));
  // numbers are widened one by one, and nulls replaced
  const auto wide =
      ps::arrow_ipc(path) | ps::decode<ps::field<"episode_index", ps::arrow_value<std::int64_t>>,
                                       ps::field<"index", ps::arrow_value<std::int64_t>>,
                                       ps::field<"hole", ps::arrow_value<std::int64_t, -1>>>;
  std::size_t next = 0;
  for (auto&& b : ps::windows<"episode_index">(wide, {.length = 4, .stride = 4}) | ps::batch(3))
    for (std::size_t i = 0; i < b.size(); ++i, ++next)
      for (std::size_t k = 0; k < 4; ++k) {
        const std::int64_t index = ps::get<"index">(b)(i, k);
        CHECK(index == ps::get<"index">(b)(i, 0) + static_cast<std::int64_t>(k));
        CHECK(ps::get<"hole">(b)(i, k) == (index % 4 == 1 ? -1 : index));
      }
  CHECK(next == 2 + 7 + 1 + 4);
  // a null without a value is an error that names its row
  const auto strict = ps::arrow_ipc(path) | ps::decode<ps::field<"hole", ps::arrow_value<std::int64_t>>>;
  const auto thrown = codec_test::caught([&] {
    for (auto&& b : ps::windows(strict, {.at = {0, 1}}) | ps::batch(1) | ps::workers(0)) static_cast<void>(b);
  });
  CHECK(thrown.code == ps::errc::missing);
  CHECK_THAT(thrown.line, contains("x.arrow"));
}

TEST_CASE("source/windows_of_tables: rows of CSV files, with texts for episodes") {
  const penstock_test::temp_dir dir;
  const std::string path = (dir / "x.csv").string();
  {
    std::ofstream out(path);
    out << "sensor,value\n";
    for (const row& one : made_rows()) out << "s" << one.episode << ',' << one.state[1] << '\n';
  }
  const auto rows = ps::csv(path) | ps::decode<ps::field<"sensor", ps::arrow_value<std::string_view>>,
                                               ps::field<"value", ps::arrow_value<double>>>;
  const auto source = ps::windows<"sensor">(rows, {.length = 4});
  CHECK(source.size() == 6 + 27 + 1 + 14);
  for (auto&& b : source | ps::batch(5, ps::collate<"sensor">(ps::ragged)))
    for (std::size_t i = 0; i < b.size(); ++i)
      for (std::size_t k = 1; k < 4; ++k)
        CHECK(ps::get<"value">(b)(i, k) == ps::get<"value">(b)(i, 0) + static_cast<double>(k));
}
