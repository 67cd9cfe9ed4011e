// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<arrow/csv/reader.h>)
#error "penstock/source/csv.hpp needs Arrow C++: link penstock::arrow"
#endif

#include <penstock/core/named_split.hpp>
#include <penstock/source/files/data_folder.hpp>
#include <penstock/source/files/file_pattern.hpp>
#include <penstock/source/tables/batch_cache.hpp>
#include <penstock/source/tables/table_source.hpp>
#include <penstock/source/text/csv_files.hpp>
#include <penstock/storage/mapped_file.hpp>

namespace penstock::inline v0_1 {
namespace detail {

/// The pieces of a run that are in memory.
class csv_batches {
 public:
  static constexpr bool in_place = false;

  template <class Known>
  csv_batches(const shared<const Known>& files, const projection& used)
      : files_(files), kept_(std::make_unique<batch_cache>(files->pieces.size(), files->options.keep)) {
    for (std::size_t i = 0; i < files->leaves.size(); ++i)
      if (used.uses(files->leaves[i])) wanted_.push_back(i);
  }

  [[nodiscard]] const arrow_batch& get(session_view session, std::size_t shard,
                                       shared<const arrow_batch>& held) const {
    held = kept_->get(shard, [&](std::size_t which, batch_cache::sharing&) {
      return static_cast<const arrow_batch*>(files_->load(session, which, wanted_).release());
    });
    return *held;
  }
  [[nodiscard]] static const arrow_batch* find(std::size_t) noexcept { return nullptr; }
  [[nodiscard]] shared<const arrow_batch> find_kept(std::size_t shard) const noexcept {
    return kept_->find(shard);
  }

 private:
  shared<const csv_files> files_;
  std::vector<std::size_t> wanted_;
  std::unique_ptr<batch_cache> kept_;
};

}  // namespace detail

/// The source that `csv` and `tsv` make of files.
template <storage Storage>
class csv_source
    : public detail::table_source<csv_source<Storage>, Storage, detail::csv_files, detail::csv_batches> {
 public:
  using typename csv_source::table_source::reader;
  static constexpr std::string_view source_name = "csv";

  csv_source(Storage where, csv_options options)
      : csv_source::table_source(std::move(where), std::move(options)) {}

  [[nodiscard]] reader connect(const projection& used = {}) const { return reader(this->table(), used); }
};

/// The rows of CSV files, in any order.
///
///     auto rows = csv("reviews/train-*.csv", {.types = {{"label", "int32"}}}) | shuffle(seed(7)) |
///                 decode<field<"text", text>, field<"label", arrow_value<std::int32_t>>>;
///     auto pairs = csv("pairs.csv", {.delimiter = ';', .columns = {"source", "target"}});
///
/// In: a pattern of paths, which is `mapped_file`; a folder, whose files `*.csv` are taken in the order of
/// their paths, with those of folders in it; or any storage, whose objects are the files. Of several splits
/// `csv(folder, split("train"))` reads one; see `split`. Text is UTF-8, values may stand in quotes and
/// contain line ends then, and empty lines are no rows. The first line has the columns' names, unless
/// `csv_options::columns` says them. All files have the same columns, in any order.
/// Out: an open sample with a member for each column, as of `arrow_ipc`: `arrow_value<T>`, or any codec of
/// bytes for texts. The types are what Arrow guesses from all values: int64, bool, date32, timestamp, double,
/// and string for what is none of these; `csv_options::types` says others. A value that stands for none is
/// null.
/// Kind: a source; indexed, deterministic, resumable, elastic, lockstep. Making the plan reads and parses all
/// files once, 16 at once, and remembers where every piece of about 1 MiB of rows begins: `starts`, so that
/// `shuffle` with a window parses each one once.
/// Cost per sample: a piece is read and parsed once, by Arrow, its named columns alone, and shared by all
/// workers; pieces are kept up to `csv_options::keep` bytes. A row is not copied.
/// Errors: errc::format, with the file, for rows of another number of values, a quote that nothing closes,
/// values that are not of the type that was said, and a file of other columns than the first;
/// errc::limit for a row of more than 256 MiB; errc::argument for a type that is not known, a column that is
/// not there, and a folder or storage of several splits; errc::missing for a folder without files or without
/// the split; errc::io. A value that does not have the type that is said for it is an error when its piece is
/// parsed.
/// Threads: any number may evaluate, each with its own worker.
/// Source: RFC 4180; Arrow C++, `arrow::csv`.
template <storage Storage>
[[nodiscard]] csv_source<Storage> csv(Storage where, csv_options options = {}) {
  return {detail::one_split(std::move(where), "csv"), std::move(options)};
}
template <storage Storage>
[[nodiscard]] csv_source<Storage> csv(Storage where, const named_split& which, csv_options options = {}) {
  return {detail::one_split(std::move(where), which, "csv"), std::move(options)};
}
template <detail::pattern_text Text>
[[nodiscard]] csv_source<mapped_file> csv(const Text& pattern, csv_options options = {}) {
  return {mapped_file(detail::csv_paths(detail::to_pattern(pattern))), std::move(options)};
}
template <detail::pattern_text Text>
[[nodiscard]] csv_source<mapped_file> csv(const Text& pattern, const named_split& which,
                                          csv_options options = {}) {
  return {mapped_file(detail::csv_paths(detail::to_pattern(pattern), &which)), std::move(options)};
}

/// The rows of files with tabs between values; otherwise as `csv`. Of a folder, files `*.tsv`.
template <storage Storage>
[[nodiscard]] csv_source<Storage> tsv(Storage where, csv_options options = {}) {
  options.delimiter = '\t';
  return {detail::one_split(std::move(where), "tsv"), std::move(options)};
}
template <storage Storage>
[[nodiscard]] csv_source<Storage> tsv(Storage where, const named_split& which, csv_options options = {}) {
  options.delimiter = '\t';
  return {detail::one_split(std::move(where), which, "tsv"), std::move(options)};
}
template <detail::pattern_text Text>
[[nodiscard]] csv_source<mapped_file> tsv(const Text& pattern, csv_options options = {}) {
  options.delimiter = '\t';
  return {mapped_file(detail::tsv_paths(detail::to_pattern(pattern))), std::move(options)};
}
template <detail::pattern_text Text>
[[nodiscard]] csv_source<mapped_file> tsv(const Text& pattern, const named_split& which,
                                          csv_options options = {}) {
  options.delimiter = '\t';
  return {mapped_file(detail::tsv_paths(detail::to_pattern(pattern), &which)), std::move(options)};
}

}  // namespace penstock::inline v0_1
