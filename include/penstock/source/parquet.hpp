// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<parquet/arrow/reader.h>)
#error "penstock/source/parquet.hpp needs Arrow C++ with Parquet: link penstock::arrow"
#endif

#include <penstock/source/dataset_format.hpp>
#include <penstock/source/files/data_folder.hpp>
#include <penstock/source/files/file_pattern.hpp>
#include <penstock/source/tables/parquet_keep.hpp>
#include <penstock/source/tables/parquet_load.hpp>
#include <penstock/storage/mapped_file.hpp>

#include <variant>

namespace penstock::inline v0_1 {

/// Options of `parquet`.
struct parquet_options {
  /// The bytes of decoded row groups that a run keeps in memory, all workers together. The one in use counts,
  /// and is always kept.
  std::uint64_t keep = 1_GiB;
  /// The maximum bytes that reading one row group may take: up to twice those of its values.
  std::uint64_t limit = 8_GiB;
  /// Whether the bytes of pages are compared with the checksums that stand in front of them, where a file has
  /// some.
  bool page_checksum_verification = true;
  /// The unit that INT96 is read in; tables have microseconds. A timestamp that it cannot count, such as
  /// nanoseconds of 2263, is an error.
  timestamp_unit coerce_int96_timestamp_unit = timestamp_unit::nano;
};

/// The source that `parquet` makes of Parquet files.
template <storage Storage>
class parquet_source : public detail::table_source<parquet_source<Storage>, Storage, detail::parquet_files,
                                                   detail::kept_batches<detail::parquet_files>> {
 public:
  using typename parquet_source::table_source::reader;
  static constexpr std::string_view source_name = "parquet";

  parquet_source(Storage where, parquet_options options)
      : parquet_source(std::move(where), options, nullptr) {}
  /// For sources of tables: what the table says of the storage's objects.
  parquet_source(Storage where, parquet_options options, const detail::table_facts* table)
      : parquet_source::table_source(std::move(where), options.coerce_int96_timestamp_unit, table),
        options_(options) {}

  [[nodiscard]] reader connect(const projection& used = {}) const {
    return reader(this->table(), used, limits());
  }

  /// Only the rows that pass a filter; see `where`.
  [[nodiscard]] friend parquet_source operator|(parquet_source source, column_filter filter) {
    auto session = source.table()->where.connect();
    return source.changed([&](detail::parquet_files& kept) { kept.keep(filter, session, source.limits()); });
  }

 private:
  [[nodiscard]] detail::batch_limits limits() const noexcept {
    return {options_.keep, options_.limit, options_.page_checksum_verification};
  }

  parquet_options options_;
};

/// Parquet files, as Spark, pandas, Polars, DuckDB, Petastorm and Hugging Face's hub have them.
///
///     auto rows = penstock::parquet("imagenet/data/train-*.parquet") | columns<"image.bytes", "label"> |
///                 where<"label">(one_of({3, 5})) | shuffle(seed(7)) |
///                 decode<field<"image.bytes", jpeg>, field<"label", arrow_value<std::int64_t>>>;
///
/// In: a pattern of paths (with `::` between patterns), which is `mapped_file`; a folder, whose files called
/// `*.parquet` are taken in the order of their paths, with those of folders in it, but not what begins with
/// `_` or `.`; or any storage, whose objects are the files. Of a folder or storage with several splits
/// `parquet(folder, split("train"))` reads one; see `split`. The columns are those of all files, in any
/// order: one that a file lacks, or has with the type null, is null there; texts may have any encoding;
/// numbers widen to the smallest type that holds all values exactly, times to the finer unit. Folders called
/// `column=value` are columns: whole numbers of 64 bits if all values are some, otherwise texts; one that is
/// in the files, too, has the files' type.
/// Out: an open sample with a member for each column, as of `arrow_ipc`: the fields of a struct are members
/// of their own ("image.bytes"), `arrow_value<T>` reads numbers, texts, lists and nulls, `arrow_array<T>`
/// lists that are arrays, and any other codec bytes and texts: `jpeg`, `npy`, `json`. Types are those that
/// Arrow gives: decimals are their bytes, times the whole numbers that they count, INT96 is nanoseconds
/// unless `parquet_options::coerce_int96_timestamp_unit` says otherwise. A column called "a.b" beside a
/// struct a with a field b is "`a.b`".
/// What no stage names is not read, nor is it by `columns`. `where` chooses rows when the plan is made,
/// exactly, and reads its column only where the file's statistics, its index of pages and its Bloom filters
/// do not decide.
/// Kind: a source; indexed, deterministic, resumable, elastic, lockstep. `starts` are those of the row
/// groups, so that `shuffle` with a window reads each one once.
/// Making the plan reads the metadata of all files, 16 at once. A plan with `where` keeps four bytes per row
/// of groups that stay in part.
/// Cost per sample: a row group is read and decoded once, by Arrow, its named columns alone, and shared by
/// all workers; row groups are kept up to `parquet_options::keep` bytes, and those of the 64 rows that come
/// next.
/// A row is not copied. No allocation per sample in the steady state.
/// Errors: errc::format, with the file, for what is no Parquet or damaged; with both files and types, when a
/// run opens or `where` is applied, for a column that is used and whose types have no common one; with both
/// values, for a row whose column is not what its folder's name says; for INT96 that its unit cannot count;
/// errc::checksum, with the file, the column and the page, for bytes that do not have their checksum, unless
/// `parquet_options::page_checksum_verification` is false; errc::limit for a row group that takes more than
/// `parquet_options::limit`; errc::argument for `where` and `columns` with a column that is not there or a
/// name that two columns have, for a folder or storage of several splits, and for one that is a table of
/// Delta Lake, Iceberg or Hudi, whose files may hold rows that were deleted, with what to write;
/// errc::missing for a folder without files or without the split; errc::io.
/// Encrypted files are not read.
/// Threads: any number may evaluate, each with its own worker.
/// Write `penstock::parquet`, since Arrow C++ has a namespace of that name.
/// Source: Apache Parquet, "File format"; Arrow C++, `parquet::arrow`.
template <storage Storage>
[[nodiscard]] parquet_source<Storage> parquet(Storage where, parquet_options options = {}) {
  return {detail::one_split(std::move(where), "parquet"), options};
}
template <storage Storage>
[[nodiscard]] parquet_source<Storage> parquet(Storage where, const named_split& which,
                                              parquet_options options = {}) {
  return {detail::one_split(std::move(where), which, "parquet"), options};
}
template <detail::pattern_text Text>
[[nodiscard]] parquet_source<mapped_file> parquet(const Text& pattern, parquet_options options = {}) {
  return {mapped_file(detail::data_paths(detail::data_kind::parquet, pattern)), options};
}
template <detail::pattern_text Text>
[[nodiscard]] parquet_source<mapped_file> parquet(const Text& pattern, const named_split& which,
                                                  parquet_options options = {}) {
  return {mapped_file(detail::data_paths(detail::data_kind::parquet, pattern, &which)), options};
}
/// From a list of paths, in which braces are not expanded.
[[nodiscard]] inline parquet_source<mapped_file> parquet(std::vector<std::string> paths,
                                                         parquet_options options = {}) {
  return {mapped_file(std::move(paths)), options};
}

/// Parquet files for `dataset`, recognised by the mark at both ends, also in folders that are columns
/// ("year=2024").
struct parquet_format {
  static constexpr std::string_view name = "parquet";

  parquet_options options = {};

  [[nodiscard]] static format_fit look(const dataset_listing& there) {
    if (there.is_table()) return format_fit::none;  // which of its files are rows, only the table knows
    if (there.fit_of(&is_parquet) != format_fit::none) return format_fit::content;
    for (const std::string& folder : there.folders())
      if (folder.find('=') != std::string::npos) return look(there.below(folder));
    return format_fit::none;
  }
  [[nodiscard]] std::variant<parquet_source<mapped_file>> open(const dataset_listing& there) const {
    const auto named = [](const listed_files& some) { return some.ending == ".parquet" && is_parquet(some); };
    const bool by_folder = there.is_folder() && (there.fit_of(&is_parquet) == format_fit::none ||
                                                 there.fit_of(named) != format_fit::none);
    if (by_folder) return parquet(there.path(), options);
    std::vector<std::string> paths = there.paths_of(&is_parquet);
    if (there.is_folder()) detail::refuse_table_folder(there.path(), name);
    return parquet(std::move(paths), options);
  }
  template <storage Storage>
  [[nodiscard]] std::variant<parquet_source<Storage>> open_in(Storage where, const dataset_listing&) const {
    return parquet(std::move(where), options);
  }

 private:
  [[nodiscard]] static bool is_parquet(const listed_files& some) {
    return some.begins("PAR1") && some.tail.ends_with("PAR1");
  }
};

}  // namespace penstock::inline v0_1
