// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/dataset_format.hpp>

#include <penstock/source/files/file_pattern.hpp>
#include <penstock/source/files/packed_format.hpp>
#include <penstock/source/files/split_files.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/file_names.hpp>
#include <penstock/storage/url.hpp>

#include <fnmatch.h>

#include <filesystem>
#include <system_error>
#include <unordered_map>

namespace penstock::inline v0_1 {
namespace detail {

inline constexpr std::size_t max_endings = 256, max_shown = 5;

/// What the names of files of one format have in common: their ending, with the one before it if it is a
/// compression, and without digits; the whole name if it has no ending.
PENSTOCK_INLINE std::string ending_of(std::string_view name) {
  name = name.substr(name.rfind('/') + 1);
  std::size_t point = name.rfind('.');
  if (point != name.npos && point != 0) {
    for (const std::string_view packed : {".gz", ".zst", ".lz4", ".bz2", ".xz", ".z"})
      if (name.substr(point) == packed)
        if (const std::size_t before = name.rfind('.', point - 1); before != name.npos && before != 0) {
          point = before;
          break;
        }
    name = name.substr(point);
  }
  std::string ending;
  for (const char c : name)
    if (c < '0' || c > '9') ending += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return ending;
}

/// The common path of two files of Megatron, if this is it, or one of the two; otherwise nothing.
PENSTOCK_INLINE std::string megatron_pair(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code failed;
  const bool ended = path.ends_with(".bin") || path.ends_with(".idx");
  std::string front = ended ? path.substr(0, path.size() - 4) : path;
  const bool both = fs::exists(front + ".bin", failed) && fs::exists(front + ".idx", failed);
  return both && (ended || !fs::exists(path, failed)) ? front : std::string();
}

/// Names for a message: the first few.
PENSTOCK_INLINE std::string listed_briefly(std::span<const std::string> names) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < max_shown; ++i)
    text.append(i == 0 ? "'" : ", '").append(names[i]).append("'");
  return names.size() > max_shown ? text + " and more" : text;
}

/// How the first of some files begins, for a message.
PENSTOCK_INLINE std::string beginning_of(const listed_files& some) {
  if (some.size == 0) return "is empty";
  const std::string_view packed = compression_of(bytes_of(some.head));
  if (!packed.empty()) return "is compressed with " + std::string(packed);
  std::string line = "begins with";
  constexpr char digits[] = "0123456789abcdef";
  for (std::size_t i = 0; i < some.head.size() && i < 8; ++i) {
    const auto value = static_cast<unsigned char>(some.head[i]);
    line.append(1, ' ').append(1, digits[value >> 4]).append(1, digits[value & 15]);
  }
  return line;
}

PENSTOCK_INLINE void refuse_urls(std::string_view path) {
  const std::size_t end = path.find("://");
  if (end == path.npos || end == 0 || path.substr(0, end).find('/') != path.npos) return;
  const std::string_view scheme = path.substr(0, end);
  if (scheme == "file")
    throw error(errc::argument,
                {"'", penstock::without_secrets(path), "' is a URL of a file: write its path"});
  const bool stored = scheme == "http" || scheme == "https" || scheme == "s3";
  const std::string_view kind = scheme == "s3" ? "s3" : "http";
  if (stored)
    throw error(errc::argument,
                {"'", penstock::without_secrets(path),
                 "' is a URL, and a path was expected: include <penstock/storage/", kind,
                 ".hpp>, link penstock::", kind, " and write dataset(", kind,
                 "(url)), where the URL names objects, as in \"", scheme, "://.../train-{0000..0127}.tar\""});
  throw error(errc::argument, {"'", penstock::without_secrets(path), "' is a URL, and a path was expected: ",
                               files::advice_for_url(scheme, penstock::without_secrets(path))});
}

PENSTOCK_INLINE void refuse_stored(std::string_view format) {
  throw error(errc::argument, {"dataset cannot read ", format, " from this storage; copy it to local files"});
}

PENSTOCK_INLINE void refuse_type_of_format(const dataset_listing& there, std::string_view format,
                                           std::string_view stored) {
  throw error(errc::argument, {"the dataset holds ", stored, ", which is not among the types of ", format,
                               "_format<...>: add it there"})
      .in_file(there.path());
}

PENSTOCK_INLINE bool index_has(const dataset_listing& there, std::string_view key) {
  if (!there.has("index.json")) return false;
  const dataset_listing index(there.path() + "/index.json");
  const std::string_view head = index.files().front().head;
  return head.starts_with('{') && head.find(text({"\"", key, "\""})) != head.npos;
}

// Whether `is` holds for any of the paths.
template <class Is>
bool any_path(std::span<const listed_files> all, const Is& is) {
  return std::ranges::any_of(all,
                             [&](const listed_files& some) { return std::ranges::any_of(some.paths, is); });
}

PENSTOCK_INLINE bool has_iceberg_metadata(const dataset_listing& there) {
  // Objects of a storage may lie in any folder, so their names must be as Iceberg has them, too.
  const auto is = [&](std::string_view path) { return is_iceberg_metadata(path, there.is_storage()); };
  if (there.is_storage()) return any_path(there.files(), is);
  return there.has_folder("metadata") && any_path(there.below("metadata").files(), is);
}

/// What to write for well-known files whose format was not among those to look for.
PENSTOCK_INLINE std::string advice_for(const dataset_listing& there,
                                       std::span<const format_candidate> looked_for) {
  struct known {
    std::string_view format, header, component;
    bool (*is)(const dataset_listing&);
    bool (*is_file)(const listed_files&) = nullptr;
  };
  const auto any = [&](auto&& is) { return std::ranges::any_of(there.files(), is); };
  static constexpr known formats[] = {
      {"mds", "mds", "json", [](const dataset_listing& all) { return index_has(all, "shards"); }},
      {"litdata", "litdata", "json", [](const dataset_listing& all) { return index_has(all, "chunks"); }},
      {"energon", "energon", "yaml", [](const dataset_listing& all) { return all.has(".nv-meta"); }},
      {"delta", "delta", "arrow", [](const dataset_listing& all) { return all.has_folder("_delta_log"); }},
      {"iceberg", "iceberg", "arrow", &has_iceberg_metadata},
  };
  static constexpr known of_files[] = {
      {"parquet", "parquet", "arrow", nullptr, [](const listed_files& one) { return one.begins("PAR1"); }},
      {"tfrecord", "tfrecord", "tfrecord", nullptr,
       [](const listed_files& one) { return one.ending.find("tfrecord") != one.ending.npos; }},
      {"safetensors_rows", "safetensors", "json", nullptr,
       [](const listed_files& one) {
         return one.head.size() > 8 && one.head[8] == '{' && one.head[7] == '\0';
       }},
      {"idx_gz", "idx_gz", "gzip", nullptr,
       [](const listed_files& one) {
         return one.begins("\x1f\x8b") && one.paths.front().find("idx") != std::string::npos;
       }},
  };
  const auto is_new = [&](std::string_view name) {
    return std::none_of(looked_for.begin(), looked_for.end(),
                        [&](const format_candidate& one) { return one.name == name; });
  };
  const auto line = [](const known& one) {
    return text({"; this looks like ", one.format, ": include <penstock/source/", one.header,
                 ".hpp>, link penstock::", one.component, " and give dataset ", one.format, "_format{}"});
  };
  for (const known& one : formats)
    if (is_new(one.format) && one.is(there)) return line(one);
  if (there.is_table()) {
    const table_mark& mark = there.table();
    const bool delta = mark.format == table_format::delta, iceberg = mark.format == table_format::iceberg;
    if (!delta && !iceberg)
      return text(
          {"; this is ",
           mark.format == table_format::hudi ? "a table of Apache Hudi" : "what Spark's streaming wrote",
           ", for which there is no source"});
    const std::string_view called = delta ? "delta" : "iceberg";
    return text(
        {"; it is part of a table: name the table's folder, as in ", called, "(\"", mark.folder, "\")"});
  }
  for (const known& one : of_files)
    if (is_new(one.format) && any(one.is_file)) return line(one);
  if (any([](const listed_files& one) { return one.ending == ".bin"; }))
    return "; tokens without a header are not recognised: write raw_tokens<std::uint16_t>(path, window)";
  if (there.is_folder() && !there.folders().empty())
    return text({"; if one of its folders is the dataset, name it: \"", there.path(), "/",
                 there.folders().front(), "\""});
  return {};
}

PENSTOCK_INLINE std::size_t best_format(const dataset_listing& there,
                                        std::span<const format_candidate> candidates) {
  format_fit best = format_fit::none;
  for (const format_candidate& one : candidates) best = std::max(best, one.fit);
  std::vector<std::string_view> names, fitting;
  std::size_t which = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const format_candidate& one = candidates[i];
    if (std::ranges::find(names, one.name) == names.end()) names.push_back(one.name);
    if (one.fit != best) continue;
    which = i;
    if (std::ranges::find(fitting, one.name) == fitting.end()) fitting.push_back(one.name);
  }
  const auto list = [](const std::vector<std::string_view>& all, std::string_view between) {
    std::string text;
    for (const std::string_view one : all) text.append(text.empty() ? "" : between).append(one);
    return text;
  };
  if (best == format_fit::none)
    throw error(errc::format, {"no dataset is recognised here; found ", there.describe(), "; looked for ",
                               list(names, ", "), advice_for(there, candidates)})
        .in_file(there.path());
  if (fitting.size() > 1)
    throw error(errc::argument,
                {"this can be read as ", list(fitting, " and as "), "; found ", there.describe(),
                 "; choose, as in dataset(path, ", fitting.front(), "_format{}), or name files of one kind"})
        .in_file(there.path());
  return which;
}

}  // namespace detail

PENSTOCK_INLINE dataset_listing::dataset_listing(std::string path) : path_(std::move(path)) { list(); }

PENSTOCK_INLINE dataset_listing::dataset_listing(const std::string& path, const named_split& which)
    : path_(path) {
  namespace fs = std::filesystem;
  detail::refuse_urls(path);
  const detail::source_call call{"dataset", path_};
  std::error_code failed;
  if (!fs::is_directory(path, failed)) {
    list_paths(detail::names_of_split(detail::paths_of(path), which, call));
    return;
  }
  std::vector<std::string> relative, chosen;
  const auto options = fs::directory_options::follow_directory_symlink;
  for (fs::recursive_directory_iterator at(path, options, failed), end; !failed && at != end;
       at.increment(failed)) {
    const std::string name = at->path().filename().string();
    const bool hidden = name.starts_with('.') || name.starts_with('_');
    if (hidden) at.disable_recursion_pending();
    std::error_code unknown;
    if (!hidden && at->is_regular_file(unknown))
      relative.push_back(at->path().lexically_relative(path).string());
  }
  if (failed) throw error(errc::io, {"the folder cannot be read: ", failed.message()}).in_file(path_);
  std::sort(relative.begin(), relative.end());
  for (const std::size_t i : detail::files_of(relative, which, call)) chosen.push_back(relative[i]);
  // A split that is a folder is a dataset of its own.
  const std::string below = chosen.empty() ? "" : chosen.front().substr(0, detail::common_folder(chosen));
  const auto in_it = std::count_if(relative.begin(), relative.end(),
                                   [&](const std::string& one) { return one.starts_with(below); });
  if (!below.empty() && static_cast<std::size_t>(in_it) == chosen.size()) {
    path_ += "/" + below;
    list();
    return;
  }
  for (std::string& one : chosen) one.insert(0, path + "/");
  list_paths(std::move(chosen));
}

PENSTOCK_INLINE void dataset_listing::list() {
  namespace fs = std::filesystem;
  detail::refuse_urls(path_);
  path_ = detail::files::local_path(path_);
  if (path_.empty()) throw error(errc::argument, "the path of the dataset is empty");
  std::error_code failed;
  if (fs::is_directory(path_, failed)) {
    while (path_.size() > 1 && path_.ends_with('/')) path_.pop_back();
    is_folder_ = true;
    table_ = detail::table_at(path_);
    list_folder();
  } else if (std::string tokens = detail::megatron_pair(path_); !tokens.empty()) {
    list_paths({tokens + ".bin", tokens + ".idx"});
  } else if (fs::is_regular_file(path_, failed)) {  // whatever its name would be as a pattern
    list_paths({path_});
  } else {
    list_paths(detail::paths_of(path_));
  }
}

PENSTOCK_INLINE bool dataset_listing::has(std::string_view name) const {
  std::error_code failed;
  return is_folder_ && std::filesystem::exists(path_ + "/" + std::string(name), failed);
}

PENSTOCK_INLINE bool dataset_listing::has_folder(std::string_view name) const {
  std::error_code failed;
  if (is_folder_) return std::filesystem::is_directory(path_ + "/" + std::string(name), failed);
  const auto lies_in_it = [&](std::string_view path) {
    for (std::size_t at = path.find(name); at != path.npos; at = path.find(name, at + 1)) {
      const std::size_t end = at + name.size();
      if ((at == 0 || path[at - 1] == '/') && end < path.size() && path[end] == '/') return true;
    }
    return false;
  };
  return is_storage_ && detail::any_path(files_, lies_in_it);
}

PENSTOCK_INLINE dataset_listing dataset_listing::below(std::string_view folder) const {
  return dataset_listing(path_ + "/" + std::string(folder));
}

PENSTOCK_INLINE void dataset_listing::list_folder() {
  namespace fs = std::filesystem;
  std::error_code failed;
  std::vector<std::string> paths;
  for (fs::directory_iterator at(path_, failed), end; !failed && at != end; at.increment(failed)) {
    std::string name = at->path().filename().string();
    if (name.starts_with('.') || name.starts_with('_') || name.find(".penstock-") != name.npos) continue;
    std::error_code unknown;  // a link that leads nowhere is neither
    if (at->is_directory(unknown))
      folders_.push_back(std::move(name));
    else if (at->is_regular_file(unknown))
      paths.push_back(path_ + "/" + name);
  }
  if (failed) throw error(errc::io, {"the folder cannot be read: ", failed.message()}).in_file(path_);
  std::sort(folders_.begin(), folders_.end());
  std::sort(paths.begin(), paths.end());
  list_paths(std::move(paths));
}

PENSTOCK_INLINE void dataset_listing::list_paths(std::vector<std::string> paths) {
  const file all(std::move(paths));
  auto session = all.connect();
  list_names(all.names(), session);
}

PENSTOCK_INLINE void dataset_listing::list_objects(std::span<const std::string> names, session_view session) {
  path_ = "the storage";
  is_storage_ = true;
  table_ = detail::table_among(names);
  list_names(names, session);
}

PENSTOCK_INLINE void dataset_listing::list_names(std::span<const std::string> names, session_view session) {
  std::unordered_map<std::string, std::size_t> known;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto [place, is_new] = known.try_emplace(detail::ending_of(names[i]), files_.size());
    if (is_new) {
      listed_files some;
      some.ending = place->first;
      if (files_.size() < detail::max_endings) {
        const auto object = static_cast<object_id>(i);
        some.size = session.size(object);
        some.head.resize(detail::to_size(std::min<std::uint64_t>(some.size, 4_KiB)));
        session.read(object, 0, std::as_writable_bytes(std::span(some.head.data(), some.head.size())));
        some.tail.resize(detail::to_size(std::min<std::uint64_t>(some.size, 16)));
        session.read(object, some.size - some.tail.size(),
                     std::as_writable_bytes(std::span(some.tail.data(), some.tail.size())));
      }
      files_.push_back(std::move(some));
    }
    files_[place->second].paths.push_back(names[i]);
  }
}

PENSTOCK_INLINE std::string dataset_listing::describe() const {
  if (files_.empty() && folders_.empty()) return "nothing";
  std::string line;
  std::size_t shown = 0;
  for (const listed_files& some : files_) {
    if (shown == detail::max_shown) {
      line.append(" and others");
      break;
    }
    const std::string first = some.paths.front().substr(some.paths.front().rfind('/') + 1);
    line.append(shown++ == 0 ? "" : ", ");
    detail::append(
        line, {some.paths.size(), some.paths.size() == 1 ? " file '" : " files like '", first,
               some.paths.size() == 1 ? "', which " : "', the first of which ", detail::beginning_of(some)});
  }
  if (!folders_.empty())
    detail::append(
        line, {line.empty() ? "" : ", ", folders_.size(), folders_.size() == 1 ? " folder, " : " folders, ",
               detail::listed_briefly(folders_)});
  return line;
}

PENSTOCK_INLINE std::vector<std::string> dataset_listing::in_order(std::vector<std::string> paths) const {
  if (!is_folder_) return paths;
  std::sort(paths.begin(), paths.end());
  const auto kind = [](const std::string& path) {  // digits are counters, and stand for any others
    std::string name;
    for (const char c : path.substr(path.rfind('/') + 1))
      if (c < '0' || c > '9')
        name += c;
      else if (!name.ends_with('*'))
        name += '*';
    return name;
  };
  const std::string first = paths.empty() ? std::string() : kind(paths.front());
  const auto is_other = [&](const std::string& path) { return kind(path) != first; };
  const auto other = std::find_if(paths.begin(), paths.end(), is_other);
  if (other == paths.end()) return paths;
  const bool matches_others = std::any_of(other, paths.end(), [&](const std::string& path) {
    return is_other(path) && ::fnmatch(first.c_str(), path.c_str() + path.rfind('/') + 1, FNM_PERIOD) == 0;
  });
  const std::string name = matches_others ? paths.front() : detail::text({path_, "/", first});
  throw error(errc::argument, {"the folder has files of several kinds, such as '", paths.front(), "' and '",
                               *other, "': name those of one dataset, as in dataset(\"", name,
                               "\"), or a split, as in dataset(\"", path_, "\", split(\"train\"))"})
      .in_file(path_);
}

}  // namespace penstock::inline v0_1
