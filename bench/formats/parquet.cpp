// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows 26o to 26s: two columns of a Parquet file of twenty, in the page cache, in batches of 1,024 rows,
// against Arrow C++ that reads the same row groups and copies the columns; against the readers of Hugging
// Face and of Petastorm; and how much is read for a filter that one row group in a hundred can meet. 26x: the
// same with the checksums of pages compared, against the same without.

#include "formats/its_reader.hpp"
#include "support/folder.hpp"
#include "support/harness.hpp"

#include <penstock/codec/arrow_value.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/parquet.hpp>
#include <penstock/source/parquet_writer.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include <arrow/array.h>
#include <arrow/io/file.h>
#include <arrow/table.h>
#include <parquet/arrow/reader.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ps = penstock;

namespace {

constexpr std::size_t rows_each = 1024, columns = 20;

/// A number for a row, that does not compress away.
double noise(std::uint64_t i) {
  return static_cast<double>(ps::mix64(i) >> 11) / static_cast<double>(std::uint64_t{1} << 53);
}

void write_table(const std::string& path, std::uint64_t rows, std::uint64_t group, bool checksums = false) {
  std::vector<std::pair<std::string, std::string>> schema{{"label", "int64"}, {"v", "double"}};
  while (schema.size() < columns) schema.emplace_back("c" + std::to_string(schema.size()), "double");
  ps::parquet_writer out(path, schema,
                         {.group_rows = group,
                          .group_bytes = std::uint64_t{1} << 40,
                          .compression = "snappy",
                          .page_checksum = checksums});
  std::vector<ps::parquet_writer::field> row(columns);
  for (std::uint64_t i = 0; i < rows; ++i) {
    row[0] = {"label", static_cast<std::int64_t>(i)};
    for (std::size_t k = 1; k < columns; ++k) row[k] = {schema[k].first, noise(i * columns + k)};
    out.write(row);
  }
  out.close();
}

struct look_at_rows {
  template <class Batch>
  std::uint64_t operator()(Batch& b) const {
    return static_cast<std::uint64_t>(ps::get<"label">(b)[0]) +
           static_cast<std::uint64_t>(ps::get<"v">(b)[0] * 1e6);
  }
};

/// What a program that uses Arrow C++ alone writes: row groups from `first` to `last`, one after another,
/// copied to batches, several in turn.
std::uint64_t arrow_alone(const std::string& path, int part, int parts) {
  constexpr std::size_t slots = 4;
  std::vector<std::int64_t> labels(slots * rows_each);
  std::vector<double> values(slots * rows_each);
  const auto file = arrow::io::MemoryMappedFile::Open(path, arrow::io::FileMode::READ).ValueOrDie();
  parquet::arrow::FileReaderBuilder builder;
  parquet::ArrowReaderProperties how;
  how.set_use_threads(false);
  std::unique_ptr<parquet::arrow::FileReader> reader;
  if (!builder.Open(file).ok() || !builder.properties(how)->Build(&reader).ok())
    throw std::runtime_error("Arrow cannot read the file");
  std::uint64_t sum = 0;
  std::size_t filled = 0, slot = 0;
  const int groups = reader->num_row_groups();
  for (int g = groups * part / parts; g < groups * (part + 1) / parts; ++g) {
    std::shared_ptr<arrow::Table> table;
    if (!ps::detail::read_parquet_group(*reader, g, {0, 1}, table).ok())
      throw std::runtime_error("Arrow cannot read a row group");
    const auto label = std::static_pointer_cast<arrow::Int64Array>(table->column(0)->chunk(0));
    const auto value = std::static_pointer_cast<arrow::DoubleArray>(table->column(1)->chunk(0));
    for (std::int64_t at = 0; at < table->num_rows();) {
      const auto count =
          std::min<std::int64_t>(static_cast<std::int64_t>(rows_each - filled), table->num_rows() - at);
      const auto size = static_cast<std::size_t>(count);
      std::memcpy(labels.data() + slot * rows_each + filled, label->raw_values() + at,
                  size * sizeof(std::int64_t));
      std::memcpy(values.data() + slot * rows_each + filled, value->raw_values() + at, size * sizeof(double));
      at += count;
      filled += size;
      if (filled == rows_each) {
        sum += static_cast<std::uint64_t>(labels[slot * rows_each]) +
               static_cast<std::uint64_t>(values[slot * rows_each] * 1e6);
        filled = 0;
        slot = (slot + 1) % slots;
      }
    }
  }
  if (filled != 0)
    sum += static_cast<std::uint64_t>(labels[slot * rows_each]) +
           static_cast<std::uint64_t>(values[slot * rows_each] * 1e6);
  return sum;
}

using two_columns = ps::decode_stage<ps::field<"label", ps::arrow_value<std::int64_t>>,
                                     ps::field<"v", ps::arrow_value<double>>>;

void measure(const bench::options& o) {
  const std::string what = "Parquet, 2 of 20 columns, batches of 1,024 rows, ";
  const bench::row alone{"26o", what + "no worker / Arrow C++ in one thread", 0.9},
      both{"26p", what + "2 workers / Arrow C++ in two threads", 0.9},
      hugging{"26q", what + "1 worker / datasets of Hugging Face, 1 worker", 10},
      petastorm{"26r", what + "1 worker / Petastorm, 1 thread", 10},
      filtered{"26s", "Parquet, a filter that 1 of 100 row groups meets: bytes read / bytes in it", 1.1,
               true},
      checked{"26x", what + "no worker, checksums of pages compared / not compared", 0.8};
  const auto any = [&](const auto&... rows) { return (o.wants(rows.id) || ...); };
  if (!any(alone, both, hugging, petastorm, filtered, checked)) return;
  // Whole batches in each half of the row groups, so that the sums are the same.
  const std::uint64_t group = (o.quick ? 10 : 100) * rows_each, rows = 30 * group;
  const bench::folder folder(o, "formats_parquet");
  const std::string path = folder.file("rows.parquet");
  write_table(path, rows, group);
  // Row groups are decoded in each epoch: a sixth of them stay in memory.
  const auto source = ps::parquet(path, {.keep = 8 << 20}) | two_columns{};
  if (any(alone, both)) {
    auto single = (source | ps::batch(rows_each)).open();
    auto pair = (source | ps::batch(rows_each) | ps::workers(2)).open();
    auto ours_alone = bench::epochs_of(single, look_at_rows{});
    auto ours_both = bench::epochs_of(pair, look_at_rows{});
    ours_alone();
    ours_both();
    bench::compare(o, alone, ours_alone, [&] { return arrow_alone(path, 0, 1); });
    bench::compare(o, both, ours_both, [&] {
      return bench::on_two_threads([&](int half) { return arrow_alone(path, half, 2); });
    });
  }
  bench::against_its_reader(o, hugging, source, look_at_rows{}, rows, "BENCH_DATASETS_PYTHON",
                            "datasets '" + path + "'", rows_each);
  bench::against_its_reader(o, petastorm, source, look_at_rows{}, rows, "BENCH_PETASTORM_PYTHON",
                            "petastorm '" + path + "'", rows_each);
  if (o.wants(checked.id)) {
    const std::string summed = folder.file("checksums.parquet");
    write_table(summed, rows, group, true);
    const auto epochs = [&](bool verify) {
      return (ps::parquet(summed, {.keep = 8 << 20, .page_checksum_verification = verify}) | two_columns{} |
              ps::batch(rows_each))
          .open();
    };
    auto with = epochs(true), without = epochs(false);
    auto compared = bench::epochs_of(with, look_at_rows{}),
         trusted = bench::epochs_of(without, look_at_rows{});
    compared();
    trusted();
    bench::compare(o, checked, compared, trusted);
  }
  if (o.wants(filtered.id)) {
    const std::string many = folder.file("groups.parquet");
    write_table(many, 100 * group / 10, group / 10);
    const ps::simulated_storage counted(ps::file(many), {});
    const auto all = ps::parquet(counted);
    const std::uint64_t opened = counted.bytes();
    const auto label = static_cast<std::int64_t>(42 * (group / 10));
    const auto kept =
        all | ps::where<"label">(ps::between(label, label + static_cast<std::int64_t>(group / 20)));
    std::uint64_t count = 0;
    for (const std::size_t members : (kept | ps::map([](const auto& row) { return row.size(); })).epoch(0))
      count += members / columns;
    if (count != group / 20 + 1) throw std::runtime_error("the filter keeps other rows");
    const auto read = static_cast<double>(counted.bytes() - opened);
    const auto metadata = parquet::ParquetFileReader::OpenFile(many)->metadata()->RowGroup(42);
    double in_group = 0;
    for (int c = 0; c < metadata->num_columns(); ++c)
      in_group += static_cast<double>(metadata->ColumnChunk(c)->total_compressed_size());
    bench::print_row(filtered, read / in_group, read / in_group,
                     "without the metadata that opening the dataset reads: " + std::to_string(opened) +
                         " bytes of " + std::to_string(counted.bytes()));
  }
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, measure); }
