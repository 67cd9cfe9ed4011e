// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/files/data_folder.hpp>

#include <penstock/base/flat_json.hpp>
#include <penstock/source/files/whole_file.hpp>
#include <penstock/storage/file_names.hpp>

#include <filesystem>
#include <map>
#include <set>

namespace penstock::inline v0_1::detail {

/// What a folder's files are to a source.
struct folder_rules {
  std::string_view source;
  std::string_view files;  // what they are called, for a message
  bool (*is)(std::string_view name);
  bool (*is_instead)(std::string_view name) = nullptr;  // if there are none
  bool is_table = false;                                // whether a table may keep such files
  bool saved = false;  // whether `save_to_disk` writes them: folders in it are looked at only if need be
};

inline constexpr folder_rules rules_of_kinds[] = {
    {"parquet", "*.parquet",
     [](std::string_view name) {
       return name.ends_with(".parquet") || name.ends_with(".parq") || name.ends_with(".pq");
     },
     nullptr, true},
    // Hugging Face keeps what its functions returned under names that begin with "cache-".
    {"arrow_ipc", "*.arrow",
     [](std::string_view name) { return name.ends_with(".arrow") && !name.starts_with("cache-"); }, nullptr,
     true, true},
    {"csv", "*.csv", [](std::string_view name) { return name.ends_with(".csv"); }},
    {"tsv", "*.tsv", [](std::string_view name) { return name.ends_with(".tsv"); }},
    {"lines", "*.jsonl or *.txt",
     [](std::string_view name) { return name.ends_with(".jsonl") || name.ends_with(".ndjson"); },
     [](std::string_view name) { return name.ends_with(".txt") || name.ends_with(".text"); }},
    {"tfrecord", "*.tfrecord",
     [](std::string_view name) {
       const bool is_index = name.ends_with(".idx") || name.ends_with(".index") || name.ends_with(".json");
       return !is_index && (name.find("tfrecord") != name.npos || name.find(".tfrec") != name.npos);
     },
     [](std::string_view name) {
       return name.find('.') == name.npos && numbered_name_of(name).has_value();
     }}};

/// Paths relative to a folder, in the order of their bytes.
template <class Iterator>
std::vector<std::string> files_in(const std::string& folder, bool (*is)(std::string_view)) {
  namespace fs = std::filesystem;
  std::error_code failed;
  std::vector<std::string> paths;
  const auto options = fs::directory_options::follow_directory_symlink;
  for (Iterator at(folder, options, failed), end; !failed && at != end; at.increment(failed)) {
    const std::string name = at->path().filename().string();
    const bool hidden = name.starts_with('.') || name.starts_with('_');
    if (at->is_directory()) {
      if constexpr (requires { at.disable_recursion_pending(); })
        if (hidden) at.disable_recursion_pending();
      continue;
    }
    if (!hidden && name.find(".penstock-") == name.npos && is(name))
      paths.push_back(at->path().lexically_relative(folder).string());
  }
  if (failed) throw error(errc::io, {"the folder cannot be read: ", failed.message()}).in_file(folder);
  std::sort(paths.begin(), paths.end());
  return paths;
}

PENSTOCK_INLINE std::vector<std::string> files_in_folder(const std::string& folder,
                                                         const folder_rules& rules) {
  using flat = std::filesystem::directory_iterator;
  using deep = std::filesystem::recursive_directory_iterator;
  for (const auto is : {rules.is, rules.is_instead}) {
    if (is == nullptr) continue;
    std::vector<std::string> found = rules.saved ? files_in<flat>(folder, is) : std::vector<std::string>();
    if (found.empty()) found = files_in<deep>(folder, is);
    if (!found.empty()) return found;
  }
  throw error(errc::missing, {"the folder, and the folders in it, have no file called ", rules.files})
      .in_file(folder);
}

// The shards that `state.json` lists, relative to its folder; none if there is no such file.
PENSTOCK_INLINE std::optional<std::vector<std::string>> saved_shards(const std::string& folder) {
  const std::string path = folder + "/state.json";
  std::error_code failed;
  if (!std::filesystem::is_regular_file(path, failed)) return std::nullopt;
  return in_file(path, [&]() -> std::optional<std::vector<std::string>> {
    const buffer held = read_whole_file(path, 64_MiB, "a list of shards");
    const std::string_view said = text_of(held.view());
    const std::size_t begin = said.find("\"_data_files\"");
    if (begin == said.npos) return std::nullopt;
    json_reader files(said.substr(begin), {errc::format, "the list of shards", ""});
    std::vector<std::string> made;
    files.name("_data_files");
    files.list([&] {
      files.expect('{');
      files.name("filename");
      made.push_back(files.string());
      files.expect('}');
      if (!stays_in_folder(made.back()))
        throw error(errc::format, {"'", made.back(), "' leads out of the folder"});
    });
    return made;
  });
}

// What a folder has that Hugging Face saved, without what an older writing left there; whether all of it is
// said.
PENSTOCK_INLINE bool keep_saved(const std::string& folder, std::vector<std::string>& relative) {
  std::map<std::string, std::set<std::string>> listed;  // by folder
  bool all = true;
  std::vector<std::string> kept;
  for (const std::string& path : relative) {
    const std::string inner = path.substr(0, path.rfind('/') + 1);
    if (const auto [at, is_new] = listed.try_emplace(inner); is_new) {
      const auto shards = saved_shards(folder + "/" + inner);
      all = all && shards;
      if (!shards) at->second.insert("*");
      for (const std::string& shard : shards.value_or(std::vector<std::string>())) {
        if (!std::ranges::binary_search(relative, inner + shard))
          throw error(errc::missing,
                      {"'", inner, "state.json' lists '", shard, "', which is not there: fetch it"})
              .in_file(folder);
        at->second.insert(shard);
      }
    }
    const auto& shards = listed.at(inner);
    if (shards.contains("*") || shards.contains(path.substr(inner.size()))) kept.push_back(path);
  }
  relative = std::move(kept);
  return all;
}

// Hugging Face's cache has all that it made of a dataset in one folder: "imdb-test.arrow",
// "imdb-train.arrow".
PENSTOCK_INLINE void refuse_other_names(const std::string& folder, std::span<const std::string> paths) {
  const auto without_digits = [](const std::string& path) {
    std::string name = path.substr(path.rfind('/') + 1);
    std::erase_if(name, [](char c) { return c >= '0' && c <= '9'; });
    return name;
  };
  for (const std::string& path : paths)
    if (without_digits(path) != without_digits(paths.front())) {
      std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
      name = name.substr(0, name.rfind('.'));
      while (name.size() > 1 && std::string_view("-._0123456789").find(name.back()) != name.npos)
        name.remove_suffix(1);
      throw error(errc::argument,
                  {"the folder has files of several kinds, such as '", paths.front(), "' and '", path,
                   "': choose one, as in arrow_ipc(\"", folder, "\", split(\"", name, "\"))"})
          .in_file(folder);
    }
}

PENSTOCK_INLINE bool is_data_folder(const std::string& path) {
  std::error_code failed;
  return std::filesystem::is_directory(path, failed);
}

PENSTOCK_INLINE std::vector<std::string> data_paths(data_kind kind, const std::string& given,
                                                    const named_split* wanted) {
  const folder_rules& rules = rules_of_kinds[static_cast<std::size_t>(kind)];
  const std::string pattern = files::local_path(given);
  const source_call call{rules.source, pattern};
  if (!is_data_folder(pattern)) {
    std::vector<std::string> paths = paths_of(pattern);
    // Files that are named one by one are taken as they are.
    if (rules.is_table && pattern.find_first_of("*?[") != pattern.npos)
      refuse_table_files(paths, rules.source);
    return wanted == nullptr ? paths : names_of_split(paths, *wanted, call);
  }
  if (rules.is_table) refuse_table_folder(pattern, rules.source);
  std::string folder = pattern;
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  std::vector<std::string> relative = files_in_folder(folder, rules);
  const bool all_said = rules.saved && keep_saved(folder, relative);
  if (wanted == nullptr) {
    refuse_several_splits(relative, call);
  } else {
    std::vector<std::string> chosen;
    for (const std::size_t i : files_of(relative, *wanted, call)) chosen.push_back(std::move(relative[i]));
    relative = std::move(chosen);
  }
  for (std::string& path : relative) path.insert(0, folder == "/" ? folder : folder + "/");
  if (all_said) return relative;
  check_numbered_files(relative, call);
  if (rules.saved && (wanted == nullptr || wanted->name != "all")) refuse_other_names(folder, relative);
  return relative;
}

}  // namespace penstock::inline v0_1::detail
