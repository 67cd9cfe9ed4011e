// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<parquet/arrow/reader.h>)
#error "penstock/source/delta.hpp needs Arrow C++ with Parquet: link penstock::arrow"
#endif
#if !__has_include(<nlohmann/json.hpp>)
#error "penstock/source/delta.hpp needs nlohmann-json: link penstock::arrow"
#endif

#include <penstock/source/parquet.hpp>
#include <penstock/source/tables/delta_log.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/file_names.hpp>

namespace penstock::inline v0_1 {

/// Options of `delta`: which version of the table, and how its files are read. At most one of the first two.
struct delta_options {
  std::optional<std::uint64_t> version = {};   ///< none: the newest
  std::optional<std::int64_t> timestamp = {};  ///< the version at that time, in milliseconds since 1970
  parquet_options files = {};
};

/// Tables of Delta Lake.
///
///     auto rows = delta("sales", {.version = 3}) | where<"year">(equals(2025)) | shuffle(seed(7)) |
///                 decode<field<"amount", arrow_value<double>>>;
///
///
/// In: the table's folder in the local file system; or a storage that has the files of the table's log, among
/// others or alone, such as `s3(s3::list("bucket/sales/_delta_log/"))`: the table's other files are opened by
/// their names, with the storage's options.
/// Out: the source `parquet` of the files of one version, in the order of their paths, without rows that
/// deletion vectors name. Partition columns are columns; a column that was added later is null in older
/// files. With column mapping, columns and fields of structs have their logical names; by `id`, columns are
/// found by their numbers where files have some, and fields by name. Columns that were widened have the
/// table's type and exact values. Timestamps are microseconds, those that are INT96 in files, too.
/// Kind: as `parquet`. The plan names the version; its fingerprint is that of the table's id, the version and
/// its files, so that a table that has grown is another dataset unless the version is named.
/// Making the plan reads the log from its last checkpoint on, 16 files at once, and what `parquet` reads;
/// files of the log in memory have at most 256 MiB together, or are a single one, of at most 1 GiB; that is
/// as they are stored, and the rows of a checkpoint may take several times as much while it is read. A
/// version's time is what its commit says of itself, as Spark's `inCommitTimestamp`, or else `timestamp`, or
/// else, of a local file, that of the file.
/// Errors: errc::missing for what is no table, and for a version that is not in the log any more, with those
/// that are; errc::format, with the file, for a log or a deletion vector that is damaged, and for a column
/// whose type in a file does not become the table's by widening; errc::checksum for a deletion vector
/// whose checksum is not its own; errc::limit for one of more than 2^27 rows; errc::argument for reader
/// features that are not known, with their names, for files in another file system, and for the logs of two
/// tables; what `parquet` throws, and the storage.
/// Threads: as `parquet`.
/// Source: Delta Lake, PROTOCOL.md.
[[nodiscard]] inline parquet_source<mapped_file> delta(const std::string& path,
                                                       const delta_options& options = {}) {
  const std::string folder = detail::files::local_path(detail::name_of_uri(path));
  const detail::table_objects objects{file(std::vector<std::string>())};
  detail::delta_snapshot found = detail::read_delta(folder, detail::delta_log_files(folder), objects,
                                                    options.version, options.timestamp);
  return {mapped_file(std::move(found.paths)), options.files, &found.table};
}
template <renaming_storage Storage>
[[nodiscard]] parquet_source<Storage> delta(const Storage& log, const delta_options& options = {}) {
  detail::delta_snapshot found =
      detail::read_delta(detail::delta_folder(log.names()), log.names(), detail::table_objects(log),
                         options.version, options.timestamp);
  return {log.with_names(std::move(found.paths)), options.files, &found.table};
}

/// Tables of Delta Lake for `dataset`, recognised by their log, in the table's folder or in a storage, which
/// may have the table's other files, too.
struct delta_format {
  static constexpr std::string_view name = "delta";

  delta_options options = {};

  [[nodiscard]] static format_fit look(const dataset_listing& there) {
    return there.has_folder("_delta_log") ? format_fit::description : format_fit::none;
  }
  [[nodiscard]] std::variant<parquet_source<mapped_file>> open(const dataset_listing& there) const {
    return delta(there.path(), options);
  }
  template <renaming_storage Storage>
  [[nodiscard]] std::variant<parquet_source<Storage>> open_in(const Storage& where,
                                                              const dataset_listing&) const {
    return delta(where, options);
  }
};

}  // namespace penstock::inline v0_1
