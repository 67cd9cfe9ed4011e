// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/arrow_ipc.hpp>

#include <charconv>
#include <filesystem>
#include <system_error>

namespace penstock::inline v0_1 {
namespace detail {

PENSTOCK_INLINE std::string_view ipc_row::key() const {
  *key_ = files_->key_of(shard_, row_);
  return *key_;
}

PENSTOCK_INLINE std::vector<std::string> arrow_paths(const std::string& pattern) {
  std::error_code failed;
  if (!std::filesystem::is_directory(pattern, failed)) return tar::paths_of(pattern);
  std::vector<std::string> paths;
  bool has_folders = false;
  for (std::filesystem::directory_iterator at(pattern, failed), end; !failed && at != end;
       at.increment(failed)) {
    if (at->is_directory()) has_folders = true;
    if (at->path().extension() == ".arrow" && !at->path().filename().string().starts_with("cache-"))
      paths.push_back(at->path().string());
  }
  if (failed) throw error(errc::io, {"the folder cannot be read: ", failed.message()}).in_file(pattern);
  if (paths.empty())
    throw error(errc::missing, {"the folder has no file called *.arrow",
                                has_folders ? "; of a dataset in several parts, name the folder of one" : ""})
        .in_file(pattern);
  std::sort(paths.begin(), paths.end());
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
  // "train-00003-of-00012.arrow": a file that is not there would go unnoticed.
  const std::string_view last = paths.back();
  if (const auto of = last.rfind("-of-"); of != last.npos) {
    std::size_t count = 0;
    const char* const begin = last.data() + of + 4;
    if (std::from_chars(begin, last.data() + last.size(), count).ec == std::errc{} && count != paths.size())
      throw error(errc::missing, {"the folder has ", paths.size(),
                                  " files called *.arrow, and the last one says that "
                                  "there are ",
                                  count, ": fetch the others, or name the files to read"})
          .in_file(pattern);
  }
  return paths;
}

}  // namespace detail
}  // namespace penstock::inline v0_1
