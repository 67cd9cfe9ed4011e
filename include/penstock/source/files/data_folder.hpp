// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/source/files/split_files.hpp>
#include <penstock/source/files/table_marks.hpp>
#include <penstock/storage/concepts.hpp>

namespace penstock::inline v0_1::detail {

/// The paths of a dataset's files: those of a folder, or those that a pattern names; of a split, if one is
/// named, and otherwise those of a folder that has one only. Throw errc::missing for a folder without any,
/// without the split, or without some of those that names count, and errc::argument for files of several
/// splits, of two writings of a dataset, and for a table's folder.
///
/// Folders are looked through with the folders in them, without names that begin with `_` or `.`.
[[nodiscard]] std::vector<std::string> parquet_paths(const std::string& pattern,
                                                     const named_split* wanted = nullptr);
/// Of the folders that Hugging Face's `datasets` writes with `save_to_disk` those that their `state.json`
/// lists.
[[nodiscard]] std::vector<std::string> arrow_paths(const std::string& pattern,
                                                   const named_split* wanted = nullptr);
[[nodiscard]] std::vector<std::string> csv_paths(const std::string& pattern,
                                                 const named_split* wanted = nullptr);
[[nodiscard]] std::vector<std::string> tsv_paths(const std::string& pattern,
                                                 const named_split* wanted = nullptr);
/// Whether there is a folder of this name.
[[nodiscard]] bool is_data_folder(const std::string& path);
/// `*.jsonl` and `*.ndjson`; if there are none, `*.txt` and `*.text`.
[[nodiscard]] std::vector<std::string> line_paths(const std::string& pattern,
                                                  const named_split* wanted = nullptr);
/// Names with "tfrecord" or ".tfrec" in them; if there are none, numbered ones without an ending.
[[nodiscard]] std::vector<std::string> tfrecord_paths(const std::string& pattern,
                                                      const named_split* wanted = nullptr);

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
