// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/detail/table_folder.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/source/detail/file_pattern.hpp>
#include <penstock/storage/file_names.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <initializer_list>
#include <string_view>
#include <system_error>

namespace penstock::inline v0_1 {
namespace detail {

PENSTOCK_INLINE void check_numbered_files(const std::string& folder, std::span<const std::string> paths) {
  std::string_view first, first_path;
  std::size_t count = 0, said = 0;
  for (const std::string& path : paths) {
    const std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
    const std::size_t of = name.rfind("-of-");
    if (of == name.npos || of == 0) continue;
    const auto [behind, failed] = std::from_chars(name.data() + of + 4, name.data() + name.size(), said);
    std::size_t number = of;
    while (number != 0 && name[number - 1] >= '0' && name[number - 1] <= '9') --number;
    if (failed != std::errc{} || (behind != name.data() + name.size() && *behind != '.') || number == of)
      continue;
    const std::string_view front = name.substr(0, number);
    if (count++ == 0) {
      first = front;
      first_path = path;
    } else if (front != first) {
      throw error(errc::argument, {"the folder has files of several kinds, such as '", first_path, "' and '",
                                   path, "': name those of one split, as in \"", folder, "/", first, "*\""})
          .in_file(folder);
    }
  }
  if (count != 0 && count != said)
    throw error(errc::missing, {"the folder has ", count, " files called '", first,
                                "...', whose names say that "
                                "there are ",
                                said, ": fetch the others, or name the files to read"})
        .in_file(folder);
}

template <class Iterator>
std::vector<std::string> table_files(const std::string& folder,
                                     std::initializer_list<std::string_view> endings,
                                     std::string_view not_called, bool& has_folders) {
  namespace fs = std::filesystem;
  std::error_code failed;
  std::vector<std::string> paths;
  has_folders = false;
  const auto options = fs::directory_options::follow_directory_symlink;
  for (Iterator at(folder, options, failed), end; !failed && at != end; at.increment(failed)) {
    const std::string name = at->path().filename().string();
    const bool hidden = name.starts_with('.') || name.starts_with('_');
    if (at->is_directory()) {
      has_folders = true;
      if constexpr (requires { at.disable_recursion_pending(); })
        if (hidden) at.disable_recursion_pending();
      continue;
    }
    const std::string ending = at->path().extension().string();
    if (!hidden && std::ranges::find(endings, std::string_view(ending)) != endings.end() &&
        (not_called.empty() || !name.starts_with(not_called)))
      paths.push_back(at->path().string());
  }
  if (failed) throw error(errc::io, {"the folder cannot be read: ", failed.message()}).in_file(folder);
  std::sort(paths.begin(), paths.end());
  return paths;
}

PENSTOCK_INLINE std::vector<std::string> arrow_paths(const std::string& given) {
  const std::string pattern = files::local_path(given);
  namespace fs = std::filesystem;
  std::error_code failed;
  if (!fs::is_directory(pattern, failed)) return tar::paths_of(pattern);
  bool has_folders = false;
  // Hugging Face keeps what its functions returned under such names.
  const auto paths = table_files<fs::directory_iterator>(pattern, {".arrow"}, "cache-", has_folders);
  if (paths.empty())
    throw error(errc::missing, {"the folder has no file called *.arrow",
                                has_folders ? "; of a dataset in several parts, name the folder of one" : ""})
        .in_file(pattern);
  check_numbered_files(pattern, paths);
  // Hugging Face's cache has all splits of a dataset in one folder: "imdb-test.arrow", "imdb-train.arrow".
  const auto without_digits = [](const std::string& path) {
    std::string name = path.substr(path.rfind('/') + 1);
    std::erase_if(name, [](char c) { return c >= '0' && c <= '9'; });
    return name;
  };
  for (const std::string& path : paths)
    if (without_digits(path) != without_digits(paths.front()))
      throw error(errc::argument,
                  {"the folder has files of several kinds, such as '", paths.front(), "' and '", path,
                   "': name those of one dataset or split, as in arrow_ipc(\"folder/name-train*.arrow\")"})
          .in_file(pattern);
  return paths;
}

PENSTOCK_INLINE std::vector<std::string> parquet_paths(const std::string& given) {
  const std::string pattern = files::local_path(given);
  namespace fs = std::filesystem;
  std::error_code failed;
  if (!fs::is_directory(pattern, failed)) return tar::paths_of(pattern);
  bool has_folders = false;
  auto paths =
      table_files<fs::recursive_directory_iterator>(pattern, {".parquet", ".parq", ".pq"}, "", has_folders);
  if (paths.empty())
    throw error(errc::missing, "the folder, and the folders in it, have no file called *.parquet")
        .in_file(pattern);
  check_numbered_files(pattern, paths);
  return paths;
}

}  // namespace detail
}  // namespace penstock::inline v0_1
