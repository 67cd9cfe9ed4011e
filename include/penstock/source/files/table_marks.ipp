// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/files/table_marks.hpp>

#include <penstock/core/error.hpp>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

namespace penstock::inline v0_1::detail {

struct table_folder_name {
  std::string_view folder;
  table_format format;
};
inline constexpr table_folder_name table_folder_names[] = {{"_delta_log", table_format::delta},
                                                           {".hoodie", table_format::hudi},
                                                           {"_spark_metadata", table_format::spark}};

PENSTOCK_INLINE bool is_iceberg_metadata(std::string_view path, bool named) noexcept {
  if (!path.ends_with(".metadata.json") && !path.ends_with(".metadata.json.gz")) return false;
  std::string_view name = path.substr(path.rfind('/') + 1);
  const char behind = name.starts_with('v') ? '.' : '-';
  if (behind == '.') name.remove_prefix(1);
  const std::size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
  return !named || (digits != 0 && name[digits] == behind);
}

PENSTOCK_INLINE table_mark table_at(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code failed;
  // Of folders further up only what Iceberg names counts: others may be called "metadata", too.
  bool named = false;
  for (fs::path at = fs::absolute(folder, failed).lexically_normal(); !failed; at = at.parent_path()) {
    if (!at.has_filename() && at.has_relative_path()) continue;  // "sales/"
    const std::string said = named ? at.string() : folder;
    std::error_code unknown;
    for (const table_folder_name& one : table_folder_names)
      if (fs::is_directory(at / one.folder, unknown)) return {one.format, said};
    for (fs::directory_iterator file(at / "metadata", unknown), end; !unknown && file != end;
         file.increment(unknown))
      if (is_iceberg_metadata(file->path().string(), named)) return {table_format::iceberg, said};
    named = true;
    if (at == at.parent_path()) break;
  }
  return {};
}

PENSTOCK_INLINE table_mark table_among(std::span<const std::string> names) {
  for (const std::string& name : names) {
    for (const table_folder_name& one : table_folder_names)
      for (std::size_t at = name.find(one.folder); at != name.npos; at = name.find(one.folder, at + 1))
        if ((at == 0 || name[at - 1] == '/') && name.substr(at + one.folder.size(), 1) == "/")
          return {one.format, name.substr(0, at)};
    if (is_iceberg_metadata(name, true)) {
      const std::size_t folder = name.rfind("metadata/");
      return {table_format::iceberg, name.substr(0, folder == name.npos ? 0 : folder)};
    }
  }
  return {};
}

PENSTOCK_INLINE void refuse_mark(const table_mark& mark, std::string_view source, bool stored) {
  if (mark.format == table_format::none) return;
  const bool delta = mark.format == table_format::delta, iceberg = mark.format == table_format::iceberg;
  std::string said;
  if (delta || iceberg) {
    const std::string_view called = delta ? "delta" : "iceberg";
    said = text({"this is a table of ", delta ? "Delta Lake" : "Apache Iceberg",
                 ", and not all files in its folder are rows of it: read it with ", called, "(",
                 stored ? std::string("storage") : text({"\"", mark.folder, "\""}),
                 "), which <penstock/source/", called, ".hpp> has"});
  } else if (mark.format == table_format::hudi) {
    said =
        "this is a table of Apache Hudi, and not all files in its folder are rows of it; there is no source "
        "for it: let Hudi or Spark write its rows to files of their own";
  } else {
    said =
        "Spark's streaming wrote this folder, and not all files in it are rows: its folder _spark_metadata "
        "lists those that are, and there is no source for it";
  }
  error refused(errc::argument, {said, "; ", source, " reads files that are named one by one as they are"});
  if (!mark.folder.empty()) refused.in_file(mark.folder);
  throw refused;
}

PENSTOCK_INLINE void refuse_table_folder(const std::string& folder, std::string_view source) {
  refuse_mark(table_at(folder), source, false);
}

PENSTOCK_INLINE void refuse_table_files(std::span<const std::string> paths, std::string_view source) {
  std::set<std::string_view> folders;
  for (const std::string& path : paths) {
    const std::size_t slash = path.rfind('/');
    folders.insert(slash == path.npos ? "."
                                      : std::string_view(path).substr(0, std::max<std::size_t>(slash, 1)));
  }
  for (const std::string_view folder : folders) refuse_table_folder(std::string(folder), source);
}

PENSTOCK_INLINE void refuse_table_objects(std::span<const std::string> names, std::string_view source) {
  refuse_mark(table_among(names), source, true);
}

}  // namespace penstock::inline v0_1::detail
