// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<parquet/arrow/writer.h>)
#error "penstock/source/parquet_writer.hpp needs Arrow C++ with Parquet: link penstock::arrow"
#endif

#include <penstock/source/tables/parquet_columns.hpp>

namespace penstock::inline v0_1 {

/// Options of `parquet_writer`.
struct parquet_writer_options {
  std::uint64_t group_rows = std::uint64_t{1} << 20;  ///< the most rows of a row group
  std::uint64_t group_bytes = 64_MiB;  ///< about the most bytes of a row group, before compression
  /// "none", "snappy", "gzip", "zstd", "brotli" or "lz4_raw", as far as Arrow was built with it.
  std::string compression = "zstd";
  bool page_index = true;               ///< the smallest and largest values of each page
  bool page_checksum = false;           ///< a CRC-32 of each page, which readers compare
  std::vector<std::string> bloom = {};  ///< columns that get Bloom filters; needs Arrow 24
};

/// Writes a Parquet file that `parquet`, and everything else that reads Parquet, reads.
///
///     parquet_writer out("photos.parquet", {{"image", "binary"}, {"label", "int64"},
///                                           {"embedding", "fixed_size_list<float>[3]"}});
///     const std::vector<float> embedding{0.5f, 1, 2};
///     out.write({{"image", jpeg_bytes}, {"label", 7}, {"embedding", embedding}});
///     out.close();
///
/// In: the path; the columns with their types, as Arrow prints them: "bool", "int8" to "uint64", "float",
/// "double", "string", "binary", "large_binary", "date32[day]", "timestamp[ms]", "timestamp[us]",
/// "timestamp[ns]", and lists of these, `list<float>` or `fixed_size_list<float>[3]`; and a row's values, of
/// which those that are not given are null. Out: the file, which appears under its name when it is complete
/// and flushed, at `close`;
/// without it there is none.
/// Cost: a row group is kept in memory.
/// Errors: errc::argument for a type that is not known, a column that is unknown or given twice, and a value
/// that does not fit its column; errc::io with the path if the file cannot be written; errc::state after
/// `close`, and after a failure.
/// Threads: one at a time. Source: Arrow C++, `parquet::arrow::FileWriter`.
class parquet_writer {
 public:
  /// A value, and its column.
  using field = std::pair<std::string_view, parquet_value>;

  parquet_writer(std::string path, std::vector<std::pair<std::string, std::string>> columns,
                 parquet_writer_options options = {})
      : options_(std::move(options)),
        columns_(columns),
        file_(std::move(path), columns_.schema(),
              {options_.compression, options_.page_index, options_.page_checksum, options_.bloom}) {
    if (options_.group_rows == 0 || options_.group_bytes == 0)
      throw error(errc::argument, "a row group has at least one row and one byte").in_file(file_.path());
  }

  void write(std::span<const field> row) {
    if (closed_) throw error(errc::state, "the file is closed, or failed before").in_file(file_.path());
    detail::in_file(file_.path(), [&] {
      columns_.append(row);
      if (columns_.rows() >= options_.group_rows || columns_.bytes() >= options_.group_bytes) flush();
    });
  }
  void write(std::initializer_list<field> row) { write(std::span<const field>(row.begin(), row.size())); }

  /// Begins another row group.
  void flush() {
    if (columns_.rows() == 0) return;
    closed_ = true;  // if it fails
    file_.write(columns_.finish());
    closed_ = false;
  }

  /// Completes the file.
  void close() {
    if (closed_) throw error(errc::state, "the file is closed, or failed before").in_file(file_.path());
    flush();
    closed_ = true;
    file_.close();
  }

 private:
  parquet_writer_options options_;
  detail::parquet_columns columns_;
  detail::parquet_output file_;
  bool closed_ = false;
};

}  // namespace penstock::inline v0_1
