// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/source/files/file_pattern.hpp>
#include <penstock/source/files/split_files.hpp>
#include <penstock/source/files/table_marks.hpp>
#include <penstock/storage/concepts.hpp>

namespace penstock::inline v0_1::detail {

/// What a folder's files are: `*.parquet`; `*.arrow`, of the folders that Hugging Face's `datasets` writes
/// with `save_to_disk` those that their `state.json` lists; `*.csv`; `*.tsv`; `*.jsonl` and `*.ndjson`, or if
/// there are none `*.txt` and `*.text`; names with "tfrecord" or ".tfrec" in them, or if there are none
/// numbered ones without an ending.
enum class data_kind : std::uint8_t { parquet, arrow, csv, tsv, lines, tfrecord };

/// The paths of a dataset's files: those of a folder, or those that a pattern names; of a split, if one is
/// named, and otherwise those of a folder that has one only. Throws errc::missing for a folder without any,
/// without the split, or without some of those that names count, and errc::argument for files of several
/// splits, of two writings of a dataset, and for a table's folder.
///
/// Folders are looked through with the folders in them, without names that begin with `_` or `.`.
[[nodiscard]] std::vector<std::string> data_paths(data_kind kind, const std::string& pattern,
                                                  const named_split* wanted = nullptr);
template <pattern_text Text>
[[nodiscard]] std::vector<std::string> data_paths(data_kind kind, const Text& pattern,
                                                  const named_split* wanted = nullptr) {
  return data_paths(kind, to_pattern(pattern), wanted);
}
/// Whether there is a folder of this name.
[[nodiscard]] bool is_data_folder(const std::string& path);

/// A storage whose objects are the files of one dataset. Throws errc::argument for those of several splits,
/// and of a table.
template <storage Storage>
[[nodiscard]] Storage one_split(Storage where, std::string_view source) {
  refuse_table_objects(where.names(), source);
  refuse_several_splits(relative_paths(where.names()), {source, {}});
  return where;
}
/// The objects of a split.
template <storage Storage>
[[nodiscard]] Storage one_split(Storage where, const named_split& wanted, std::string_view source) {
  refuse_table_objects(where.names(), source);
  std::vector<std::string> chosen = names_of_split(where.names(), wanted, {source, {}});
  if (chosen.size() == where.names().size()) return where;
  if constexpr (renaming_storage<Storage>)
    return where.with_names(std::move(chosen));
  else
    throw error(errc::argument,
                "this storage cannot choose among its objects: make one of those of the split");
}

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/source/files/data_folder.ipp>
#endif
