// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Batches and rows to and from Arrow C++ through its C interfaces.

#include <penstock/codec/arrow_value.hpp>
#include <penstock/core/record.hpp>
#include <penstock/integration/to_arrow.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/arrow_stream.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/stage/workers.hpp>

#include "support/arrow_text.hpp"
#include "support/catch.hpp"

#include <arrow/api.h>
#include <arrow/c/abi.h>
#include <arrow/c/bridge.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ps = penstock;

static_assert(sizeof(ArrowArray) == sizeof(ps::arrow_abi::array) &&
              offsetof(ArrowArray, dictionary) == offsetof(ps::arrow_abi::array, dictionary) &&
              sizeof(ArrowSchema) == sizeof(ps::arrow_abi::schema) &&
              offsetof(ArrowSchema, children) == offsetof(ps::arrow_abi::schema, children) &&
              sizeof(ArrowArrayStream) == sizeof(ps::arrow_abi::array_stream) &&
              ARROW_FLAG_NULLABLE == ps::arrow_abi::nullable);

namespace arrow_exchange_test {

using sample = ps::record<ps::field<"n", std::int64_t>, ps::field<"s", std::string>, ps::field<"b", bool>,
                          ps::field<"v", std::vector<float>>>;

auto samples(std::uint64_t count) {
  return ps::generated(count, [](std::uint64_t i) {
    return sample(static_cast<std::int64_t>(i), "text " + std::to_string(i), i % 3 == 0,
                  std::vector<float>(i % 4, static_cast<float>(i)));
  });
}

std::shared_ptr<arrow::RecordBatchReader> batches_of(int count) {
  arrow::Int32Builder numbers;
  arrow::StringDictionaryBuilder colors;
  const auto floats = std::make_shared<arrow::FloatBuilder>();
  arrow::ListBuilder lists(arrow::default_memory_pool(), floats);
  for (int i = 0; i < count; ++i) {
    REQUIRE((i % 5 == 4 ? numbers.AppendNull() : numbers.Append(i)).ok());
    REQUIRE(colors.Append(i % 2 == 0 ? "red" : "blue").ok());
    REQUIRE(lists.Append().ok());
    for (int k = 0; k < i % 3; ++k) REQUIRE(floats->Append(static_cast<float>(i)).ok());
  }
  const auto table = arrow::Table::Make(
      arrow::schema({arrow::field("n", arrow::int32()),
                     arrow::field("k", arrow::dictionary(arrow::int8(), arrow::utf8())),
                     arrow::field("v", arrow::list(arrow::float32()))}),
      {numbers.Finish().ValueOrDie(), colors.Finish().ValueOrDie(), lists.Finish().ValueOrDie()});
  auto reader = std::make_shared<arrow::TableBatchReader>(table);
  reader->set_chunksize(7);
  return arrow::RecordBatchReader::Make(reader->ToRecordBatches().ValueOrDie(), table->schema()).ValueOrDie();
}

TEST_CASE("integration/arrow_exchange: Arrow C++ takes a batch, and finds nothing wrong with it") {
  auto run = (samples(20) | ps::batch(8, ps::ragged)).open();
  std::shared_ptr<arrow::RecordBatch> kept;
  for (auto&& b : run) {
    ArrowArray array;
    ArrowSchema schema;
    ps::to_arrow(b, &array, &schema);
    const auto found = arrow::ImportRecordBatch(&array, &schema);
    REQUIRE(found.ok());
    REQUIRE((*found)->ValidateFull().ok());
    kept = *found;
  }
  CHECK(kept->num_rows() == 4);
  CHECK(kept->schema()->ToString() == "n: int64\ns: large_string\nb: bool\nv: large_list<item: float>");
  const auto& numbers = static_cast<const arrow::Int64Array&>(*kept->column(0));
  CHECK(numbers.Value(3) == 19);
  CHECK(static_cast<const arrow::LargeStringArray&>(*kept->column(1)).GetString(3) == "text 19");
  CHECK(static_cast<const arrow::BooleanArray&>(*kept->column(2)).Value(2));
}

TEST_CASE("integration/arrow_exchange: Arrow C++ reads a run to its end") {
  const auto plan = samples(50) | ps::batch(8, ps::ragged);
  ArrowArrayStream stream;
  ps::to_arrow_stream(plan.open(), &stream);
  const auto reader = arrow::ImportRecordBatchReader(&stream);
  REQUIRE(reader.ok());
  std::int64_t rows = 0;
  std::shared_ptr<arrow::RecordBatch> batch;
  while ((*reader)->ReadNext(&batch).ok() && batch != nullptr) {
    REQUIRE(batch->ValidateFull().ok());
    rows += batch->num_rows();
  }
  CHECK(rows == 50);
}

TEST_CASE("integration/arrow_exchange: rows of Arrow C++'s readers, with dictionaries and nulls") {
  const auto source = ps::arrow_stream([] {
    ArrowArrayStream stream;
    REQUIRE(arrow::ExportRecordBatchReader(batches_of(40), &stream).ok());
    return stream;
  });
  auto run = (source | ps::map(penstock_test::arrow_row_text) | ps::workers(2)).open();
  std::vector<std::string> rows;
  for (const auto& row : run) rows.push_back(row);
  REQUIRE(rows.size() == 40);
  CHECK(rows[0] == "0\t\"726564\"\t[]");
  CHECK(rows[4] == "null\t\"726564\"\t[4010000000000000]");
  CHECK(rows[38] == "38\t\"726564\"\t[4043000000000000,4043000000000000]");
  auto shuffled = (source | ps::shuffle_buffer(10) |
                   ps::decode<ps::field<"n", ps::arrow_value<std::int64_t, 0>>,
                              ps::field<"v", ps::arrow_value<std::span<const float>>>> |
                   ps::batch(8, ps::ragged))
                      .open();
  std::int64_t sum = 0;
  std::size_t values = 0;
  for (auto&& b : shuffled) {
    for (const std::int64_t n : ps::get<"n">(b)) sum += n;
    values += ps::get<"v">(b).values().size();
  }
  CHECK(sum == 780 - (4 + 9 + 14 + 19 + 24 + 29 + 34 + 39));
  CHECK(values == 39);
}

}  // namespace arrow_exchange_test
