// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<parquet/arrow/reader.h>)
#error "penstock/source/iceberg.hpp needs Arrow C++ with Parquet: link penstock::arrow"
#endif
#if !__has_include(<nlohmann/json.hpp>)
#error "penstock/source/iceberg.hpp needs nlohmann-json: link penstock::arrow"
#endif

#include <penstock/source/parquet.hpp>
#include <penstock/source/tables/iceberg_files.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/file_names.hpp>

namespace penstock::inline v0_1 {

/// Options of `iceberg`: which snapshot of the table, and how its files are read. At most one of the first
/// three.
struct iceberg_options {
  std::optional<std::int64_t> snapshot = {};   ///< its id; none: the current one
  std::optional<std::int64_t> timestamp = {};  ///< what was current then, in milliseconds since 1970
  std::optional<std::string> ref = {};         ///< the newest of a branch, or that of a tag
  parquet_options files = {};
};

/// Tables of Apache Iceberg.
///
///     auto rows = iceberg("sales", {.snapshot = 3051729675574597004}) | where<"year">(equals(2025)) |
///                 shuffle(seed(7)) | decode<field<"amount", arrow_value<double>>>;
///
/// In: the table's folder in the local file system, or one of its metadata files, as a path or file:///path;
/// or a storage that has the files of the table's folder metadata, among others or alone, such as
/// `s3(s3::list("bucket/sales/metadata/"))`, or one of them: the table's other files are opened by their
/// names, with the storage's options.
/// Of a folder the newest metadata file is taken: the one that `version-hint.text` names, or one behind it,
/// otherwise the one with the highest number. Format versions 1, 2 and 3. A table that was moved or copied is
/// read where it is now.
/// Out: the source `parquet` of the snapshot's files, in the order of their paths, without rows that position
/// deletes and deletion vectors name. Columns are found by their numbers, also within structs; where files
/// have no numbers, by the names that the table's name mapping has for them, or else by their own. A column
/// that was renamed keeps its values, one that was added is null in older files. A snapshot or a tag that is
/// named has the columns of its time. Columns that partition all files as they are come from the manifests,
/// and stand last. No snapshot: an empty dataset.
/// Kind: as `parquet`. The plan names the snapshot; its fingerprint is that of the table's UUID, the
/// snapshot's id, its files and the columns.
/// Making the plan reads the metadata, the manifests, deletes, and what `parquet` reads, 16 files at once;
/// manifests in memory have at most 256 MiB together, or are a single one.
/// Errors: errc::missing for what is no table, a file that is not there, and a snapshot, a branch or a tag
/// that is not there, with those that are; errc::format, with the file and the offset, for what is damaged,
/// and for fields of structs in lists and maps that were added or dropped; errc::checksum for a deletion
/// vector whose checksum is not its own; errc::argument for equality deletes, default values, files that are
/// not Parquet, encrypted or in another file system, manifests that are packed with other codecs than deflate
/// and zstandard, two newest metadata files, and metadata of two tables; errc::limit for metadata of more
/// than 512 MiB and deletion vectors of more than 2^27 rows; what `parquet` throws, and the storage.
/// Threads: as `parquet`.
/// Source: Apache Iceberg, "Spec"; Apache Avro 1.12, "Specification".
[[nodiscard]] inline parquet_source<mapped_file> iceberg(const std::string& given,
                                                         const iceberg_options& options = {}) {
  const std::string path = detail::files::local_path(detail::name_of_uri(given));
  const detail::table_objects objects{file(std::vector<std::string>())};
  detail::table_snapshot found = detail::read_iceberg(path, detail::iceberg_place_of(path, objects), objects,
                                                      {options.snapshot, options.timestamp, options.ref});
  return {mapped_file(std::move(found.paths)), options.files, &found.table};
}
template <renaming_storage Storage>
[[nodiscard]] parquet_source<Storage> iceberg(const Storage& metadata, const iceberg_options& options = {}) {
  const detail::table_objects objects(metadata);
  detail::iceberg_place where = detail::iceberg_place_of(metadata.names(), objects);
  const std::string called = where.folder;
  detail::table_snapshot found = detail::read_iceberg(called, std::move(where), objects,
                                                      {options.snapshot, options.timestamp, options.ref});
  return {metadata.with_names(std::move(found.paths)), options.files, &found.table};
}

/// Tables of Apache Iceberg for `dataset`, recognised by a folder `metadata` with metadata files; in a
/// storage by these files, beside which it may have the table's others.
struct iceberg_format {
  static constexpr std::string_view name = "iceberg";

  iceberg_options options = {};

  [[nodiscard]] static format_fit look(const dataset_listing& there) {
    return detail::has_iceberg_metadata(there) ? format_fit::description : format_fit::none;
  }
  [[nodiscard]] std::variant<parquet_source<mapped_file>> open(const dataset_listing& there) const {
    return iceberg(there.path(), options);
  }
  template <renaming_storage Storage>
  [[nodiscard]] std::variant<parquet_source<Storage>> open_in(const Storage& where,
                                                              const dataset_listing&) const {
    return iceberg(where, options);
  }
};

}  // namespace penstock::inline v0_1
